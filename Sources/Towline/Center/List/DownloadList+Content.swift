import TowlineCore
import TowlineDisk
import TowlineEngine

/// The source that a reader in the app gets the bytes of a download from.
enum ContentSource: Sendable {
    case transfer(TransferRunner)
    /// The finished file or the part file on the disk, if the download has no running transfer.
    case file(ContentFile)
}

extension DownloadList {
    /// Returns the source of a download's bytes: its running transfer, or a file on the disk. Waits until the download
    /// has started.
    ///
    /// - Parameter offset: the offset of the first byte to read. If a waiting download has this byte on the disk, the
    ///   function returns without waiting.
    func contentSource(_ id: DownloadID, at offset: Int64) async throws(TowlineError) -> ContentSource {
        while true {
            // Subscribes before the first look, so that no change in between is missed.
            let changes = hub.stream(id)
            if let source = try await presentSource(id, at: offset) { return source }
            for await _ in changes { break }
            if Task.isCancelled {
                let reason = "waiting for the content of the download was cancelled; the download is not affected"
                throw TowlineError(.cancelled, reason)
            }
        }
    }

    /// Returns the running transfer or the file on the disk that can supply the byte at `offset`; `nil` if the download
    /// must start first. Throws `illegalTransition` if the download does not start automatically and has no bytes on
    /// the disk.
    private func presentSource(_ id: DownloadID, at offset: Int64) async throws(TowlineError) -> ContentSource? {
        try running.checkOpen()
        guard let record = try await registry.download(id) else {
            throw Self.notFound
        }
        if let download = running[id] { return download.runner.map { .transfer($0) } }
        switch record.state {
        case .finished, .followUpFailed: return .file(try await files.content(record))
        case .queued, .active, .waiting:
            let file = try? await files.content(record)
            // The transfer may have started while the file was opened.
            if let runner = running[id]?.runner { return .transfer(runner) }
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
