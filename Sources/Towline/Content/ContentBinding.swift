import TowlineCore
import TowlineDisk
import TowlineEngine

/// Which bytes a reader began with: what comes later must be of the same.
struct ContentBinding: Sendable {
    let completeLength: Int64?
    let version: String?
    /// The transfer, while it was one, and the generation of its bytes.
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

    /// What is there now; waits for a download that has not begun.
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

    /// Whether a transfer's bytes are the same as those the reader began with.
    func holds(_ content: TransferContent, of runner: TransferRunner) -> Bool {
        if let transfer, transfer.runner === runner { return transfer.generation == content.generation }
        guard content.generation == 0, let version else { return false }
        return version == content.strongValidator && completeLength == content.completeLength
    }

    /// The transfer that goes on with what the reader began with is its own from here on, up to the file that it makes.
    mutating func follow(_ content: TransferContent, of runner: TransferRunner) {
        transfer = (runner, content.generation)
    }

    /// Whether a file's are.
    func holds(_ file: ContentFile) async -> Bool {
        if let transfer, file.isWhole {
            // The reader's transfer made it.
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
