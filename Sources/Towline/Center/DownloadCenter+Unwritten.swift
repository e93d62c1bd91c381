import Foundation
import TowlineCore
import TowlineEngine

/// Ends that the list does not have yet, because it could not be written: its disk is full, or gone.
///
/// Until it can be, such a download keeps its place among those that run. So nothing is begun a second time because
/// the list still says that it is to run, and no more begin than there is room for.
extension DownloadCenter {
    /// After which time writing is tried again.
    static let listRetryInterval = Duration.seconds(1)

    /// Writes an end down, and lets go of the download; if the list cannot be written, later.
    func write(_ end: DownloadEnd) async {
        let id = end.download.id
        unwritten[id] = end
        do throws(TowlineError) {
            try await writeEnd(of: id)
        } catch {
            registryFailed(error)
            hub.publish(end.snapshot)
            keepWriting()
        }
    }

    /// Writes the end of a download down, if it has one that is not in the list.
    ///
    /// - Throws: what the registry says; the end is kept, and tried again.
    func writeEnd(of id: DownloadID) async throws(TowlineError) {
        guard let end = unwritten[id] else { return }
        // Written twice, the second time could come after what was written since.
        let writing =
            endWrites[id]
            ?? Task {
                let result = await put(end)
                // What settling does may end, and be written, too.
                endWrites[id] = nil
                guard case .success = result else { return result }
                unwritten[id] = nil
                await settle(end)
                return result
            }
        endWrites[id] = writing
        try await writing.value.get()
    }

    private func put(_ end: DownloadEnd) async -> Result<Void, TowlineError> {
        do throws(TowlineError) {
            // Before it is finished, so that a kill in between leaves a name too many and never a follow-up undone.
            if end.change.state?.reasonCode == FollowUpState.running(0).code {
                try await registry.setValue("", for: "follow/\(end.download.id)")
            }
            // The transfer has the download to itself, in whatever state the list has it.
            try await registry.apply([end.change])
            return .success(())
        } catch {
            return .failure(error)
        }
    }

    /// Tries again until the list is as it should be.
    func keepWriting() {
        guard writing == nil, !isClosed else { return }
        writing = Task {
            while !unwritten.isEmpty || mustLookAgain, !isClosed {
                do { try await Task.sleep(for: Self.listRetryInterval) } catch { break }
                mustLookAgain = false
                await writeEnds()
                pump()
            }
            writing = nil
        }
    }

    /// The first that cannot be written ends it: the others could not be either.
    func writeEnds() async {
        do throws(TowlineError) {
            for id in Array(unwritten.keys) { try await writeEnd(of: id) }
        } catch {
            return
        }
    }
}

/// What became of a download, for the list.
struct DownloadEnd {
    let download: LiveDownload
    /// What the transfer ended for.
    var intent: LiveDownload.Intent
    var change: RegistryChange
    /// What it waits for from then on.
    var wait: DownloadCenter.Wait?

    /// What it will be like when the list knows.
    var snapshot: DownloadSnapshot {
        var record = download.recordWithName
        if let state = change.state {
            record.state = state.state
            record.reason = state.reason
            record.reasonCode = state.reasonCode
            record.status = state.status
            record.waitUntil = state.waitUntil
            record.endedAt = state.endedAt
        }
        if let directory = change.directory { record.directory = directory }
        if let name = change.name { record.name = name }
        if let length = change.completeLength { record.completeLength = length }
        if let held = change.heldBytes { record.heldBytes = held }
        return DownloadSnapshot(record)
    }
}
