import Foundation
import TowlineCore
import TowlineEngine

/// Results of ended transfers that are not in the registry yet, because the registry cannot be written: its disk is
/// full or missing.
///
/// Until the write succeeds, the download counts as running. This prevents a second start of a download that the
/// registry still contains as running, and prevents more running downloads than the limit.
extension DownloadCenter {
    /// Writes the result of an ended transfer to the registry; the download then no longer counts as running. If the
    /// registry cannot be written, publishes the result and retries later.
    func write(_ end: DownloadEnd) async {
        let id = end.download.id
        unwritten[id] = end
        do throws(TowlineError) {
            try await writeEnd(of: id)
        } catch {
            failures.report(error)
            hub.publish(end.snapshot)
            keepWriting()
        }
    }

    /// Writes the result of a download's ended transfer to the registry, if the result is not written yet. Waits for a
    /// write in progress.
    ///
    /// - Throws: the error of the registry. The result is kept, so that the write can be retried.
    func writeEnd(of id: DownloadID) async throws(TowlineError) {
        guard let end = unwritten[id] else { return }
        // One write for each end: a second one could overwrite later changes.
        let writing =
            endWrites[id]
            ?? Task {
                let result = await put(end)
                // Settling may start the download again, whose next end needs its own write.
                endWrites[id] = nil
                guard case .success = result else { return result }
                unwritten[id] = nil
                await recordEnd(end)
                return result
            }
        endWrites[id] = writing
        try await writing.value.get()
    }

    private func put(_ end: DownloadEnd) async -> Result<Void, TowlineError> {
        do throws(TowlineError) {
            if end.beginsFollowUps { try await FollowUpRunner.mark(end.download.id, in: registry) }
            // Without a check of the state in the list: the transfer owns the download.
            try await registry.apply([end.change])
            return .success(())
        } catch {
            return .failure(error)
        }
    }

    /// Starts a task that retries every second, until the results of all ended transfers are in the registry and the
    /// queued downloads could be read.
    func keepWriting() {
        guard writing == nil, !isClosed else { return }
        writing = Task {
            while !unwritten.isEmpty || mustLookAgain, !isClosed {
                do { try await Task.sleep(for: RegistryFailures.retryInterval) } catch { break }
                mustLookAgain = false
                await writeEnds()
                pump()
            }
            writing = nil
        }
    }

    /// Writes the results of all ended transfers that are not in the registry yet. Stops after the first failure,
    /// because the other writes would fail too.
    func writeEnds() async {
        do throws(TowlineError) {
            for id in Array(unwritten.keys) { try await writeEnd(of: id) }
        } catch {
            return
        }
    }
}
