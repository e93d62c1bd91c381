import TowlineCore
import TowlineEngine

/// A reader of a running transfer. Releasing this object closes the reader.
final class TransferReading: Sendable {
    let runner: TransferRunner
    private let number: Int
    private let pulse: AsyncStream<Void>

    init(_ runner: TransferRunner) async {
        self.runner = runner
        (number, pulse) = await runner.openReader()
    }

    deinit { Task { [runner, number] in await runner.closeReader(number) } }

    /// The content of the transfer after its first response; `nil` if the transfer ended before a response.
    var begun: TransferContent? {
        get async {
            repeat {
                let content = await runner.content
                if content.isBegun { return content }
            } while await more()
            return nil
        }
    }

    /// Waits until the transfer may have more bytes.
    ///
    /// - Returns: `false` if the transfer is over.
    func more() async -> Bool {
        var iterator = pulse.makeAsyncIterator()
        return await iterator.next() != nil
    }

    /// Reads at most `count` bytes from the beginning of a range.
    func read(_ range: ByteRange, atMost count: Int, generation: Int) async throws(TowlineError) -> TransferRunner.Piece
    {
        try await runner.read(number, range, atMost: count, generation: generation)
    }

    /// Waits 10 ms. After a transfer has ended, the list contains it as running for a moment.
    static func pause() async throws(TowlineError) {
        do { try await Task.sleep(for: .milliseconds(10)) } catch {
            throw ContentCursor.cancelled
        }
    }
}
