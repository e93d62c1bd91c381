import TowlineCore
import TowlineDisk
import TowlineEngine

/// The version of the bytes that a reader started with. Later bytes must have the same version.
struct ContentBinding: Sendable {
    let completeLength: Int64?
    let version: String?
    /// The transfer that delivered the bytes, and their generation; `nil` if they came from a file.
    private(set) var transfer: (runner: TransferRunner, generation: Int)?

    private init(_ content: TransferContent, of runner: TransferRunner) {
        completeLength = content.completeLength
        version = content.strongValidator
        transfer = (runner, content.generation)
    }

    private init(_ file: ContentFile) {
        completeLength = file.completeLength
        version = file.version
        transfer = nil
    }

    /// Returns the binding to the current bytes of a download. Waits until the download has started.
    static func first(of id: DownloadID, _ center: DownloadCenter) async throws(TowlineError) -> ContentBinding {
        while true {
            switch try await center.contentSource(id, at: 0) {
            case .file(let file): return ContentBinding(file)
            case .transfer(let runner):
                let reading = await TransferReading(runner)
                if let content = await reading.begun { return ContentBinding(content, of: runner) }
                try await TransferReading.pause()
            }
        }
    }

    /// Returns whether the bytes of a transfer have the version that the reader started with.
    func holds(_ content: TransferContent, of runner: TransferRunner) -> Bool {
        if let transfer, transfer.runner === runner { return transfer.generation == content.generation }
        guard content.generation == 0, let version else { return false }
        return version == content.strongValidator && completeLength == content.completeLength
    }

    /// Binds the reader to the transfer that continues its bytes, and to the file that this transfer publishes.
    mutating func follow(_ content: TransferContent, of runner: TransferRunner) {
        transfer = (runner, content.generation)
    }

    /// Returns whether the bytes of a file have the version that the reader started with.
    func holds(_ file: ContentFile) async -> Bool {
        if let transfer, file.isWhole {
            // The reader's transfer published this file.
            let content = await transfer.runner.content
            if content.generation == transfer.generation, content.completeLength == file.completeLength,
                let length = content.completeLength, content.written.contains(ByteRange(0, length))
            {
                return true
            }
        }
        guard let version else { return false }
        return version == file.version && completeLength == file.completeLength
    }
}
