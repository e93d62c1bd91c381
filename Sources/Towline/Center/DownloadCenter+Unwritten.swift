import Foundation
import TowlineCore
import TowlineEngine

/// The writes of the results of ended transfers to the registry.
extension DownloadCenter {
    /// Writes the result of an ended transfer to the registry; the download then no longer counts as running. If the
    /// registry cannot be written, publishes the result and retries later.
    func write(_ end: DownloadEnd) async {
        running.setEnd(end)
        do throws(TowlineError) {
            try await writeEnd(of: end.download.id)
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
        guard let end = running.end(of: id) else { return }
        // One write for each end: a second one could overwrite later changes.
        let write = running.write(of: id) {
            Task {
                let result = await put(end)
                if case .success = result { await recordEnd(end) } else { running.removeWrite(of: id) }
                return result
            }
        }
        try await write.value.get()
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
        guard writing == nil, !running.isClosed else { return }
        writing = Task {
            while !running.unwritten.isEmpty || mustLookAgain, !running.isClosed {
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
            for id in running.unwritten { try await writeEnd(of: id) }
        } catch {
            return
        }
    }
}
