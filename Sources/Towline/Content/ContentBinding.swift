import TowlineCore
import TowlineDisk
import TowlineEngine

/// The version of the file whose bytes a reader of a download has started to read. Later bytes must be of the same
/// version: bytes of different versions are never joined.
struct ContentBinding: Sendable {
    let completeLength: Int64?
    let version: String?
    /// The transfer that delivered the bytes, and their generation, a number that changes when the transfer discards
    /// bytes that could be read. `nil` if the bytes came from a file on the disk.
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

    /// Returns the version of the bytes that a new reader of a download gets. Waits until the download has started and
    /// received a response, or has bytes on the disk.
    static func first(of id: DownloadID, _ list: DownloadList) async throws(TowlineError) -> ContentBinding {
        while true {
            switch try await list.contentSource(id, at: 0) {
            case .file(let file): return ContentBinding(file)
            case .transfer(let runner):
                let reading = await TransferReading(runner)
                if let content = await reading.begun { return ContentBinding(content, of: runner) }
                try await TransferReading.pause()
            }
        }
    }

    /// Returns whether the bytes of a running transfer are of the version that the reader started with. This is proven
    /// by the generation (changed when bytes are discarded) of the reader's own transfer, or by an equal strong
    /// validator and size in another transfer that discarded no bytes.
    func holds(_ content: TransferContent, of runner: TransferRunner) -> Bool {
        if let transfer, transfer.runner === runner { return transfer.generation == content.generation }
        guard content.generation == 0, let version else { return false }
        return version == content.strongValidator && completeLength == content.completeLength
    }

    /// Sets the transfer that the reader continues with, after `holds` returned `true` for its content. The file that
    /// this transfer publishes then also counts as the same version.
    mutating func follow(_ content: TransferContent, of runner: TransferRunner) {
        transfer = (runner, content.generation)
    }

    /// Returns whether the bytes of a file on the disk are of the version that the reader started with. This is proven
    /// if the reader's transfer published the file, or if version and size are equal.
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
