import TowlineCore
import TowlineDisk
import TowlineEngine

/// Where bytes of a download are read from.
enum ContentSource: Sendable {
    /// A transfer is at it.
    case transfer(TransferRunner)
    /// Nobody is at it, or it is finished.
    case file(ContentFile)
}

extension DownloadCenter {
    /// Where the bytes are; waits for a download that has not begun.
    ///
    /// - Parameter offset: what is read first: of a download that waits, what is there is read without waiting.
    nonisolated func contentSource(_ id: DownloadID, at offset: Int64) async throws(TowlineError) -> ContentSource {
        while true {
            // Before looking, so that nothing that happens in between is missed.
            let changes = hub.stream(id)
            if let source = try await presentSource(id, at: offset) { return source }
            for await _ in changes { break }
            if Task.isCancelled {
                let reason = "waiting for the content of the download was cancelled; the download is not affected"
                throw TowlineError(.cancelled, reason)
            }
        }
    }

    /// Where the bytes are now; `nil`: it has not begun.
    private func presentSource(_ id: DownloadID, at offset: Int64) async throws(TowlineError) -> ContentSource? {
        try checkOpen()
        guard let record = try await registry.download(id) else {
            throw Self.notFound
        }
        if let download = live[id] { return download.runner.map { .transfer($0) } }
        switch record.state {
        case .finished: return .file(try await files.content(record))
        case .queued, .active, .waiting:
            let file = try? await files.content(record)
            // It may have begun while the file was opened.
            if let runner = live[id]?.runner { return .transfer(runner) }
            guard let file, file.available.range(holding: offset) != nil else { return nil }
            return .file(file)
        case .paused, .failed, .cancelled:
            do throws(TowlineError) { return .file(try await files.content(record)) } catch {
                throw TowlineError(
                    .illegalTransition,
                    "no content can be read: the download is \(record.state.rawValue), and none of its bytes are on "
                        + "the disk. Start the download again first")
            }
        }
    }
}
