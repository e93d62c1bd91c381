import TowlineCore
import TowlineEngine

/// A reader of the bytes of a running transfer, which requests the bytes after the reader's offset first. Releasing
/// this object closes the reader.
final class TransferReading: Sendable {
    let runner: TransferRunner
    private let number: Int
    private let pulse: AsyncStream<Void>

    init(_ runner: TransferRunner) async {
        self.runner = runner
        (number, pulse) = await runner.openReader()
    }

    deinit { Task { [runner, number] in await runner.closeReader(number) } }

    /// The length and version of the file that the transfer receives, once it has begun. Waits until a response arrived
    /// or bytes of an earlier transfer exist. `nil` if the transfer ended before.
    var begun: TransferContent? {
        get async {
            repeat {
                let content = await runner.content
                if content.isBegun { return content }
            } while await more()
            return nil
        }
    }

    /// Waits until the transfer may have received more bytes.
    ///
    /// - Returns: `false` if the transfer has ended.
    func more() async -> Bool {
        var iterator = pulse.makeAsyncIterator()
        return await iterator.next() != nil
    }

    /// Reads at most `count` bytes from the beginning of a range. The result also says why no bytes were read: for
    /// example, `changed` if the transfer discarded bytes and so no longer has this `generation`, a number that
    /// increases with each loss.
    func read(_ range: ByteRange, atMost count: Int, generation: Int) async throws(TowlineError) -> TransferRunner.Piece
    {
        try await runner.read(number, range, atMost: count, generation: generation)
    }

    /// Waits 10 ms before a reader looks again for a transfer or a file with its bytes: a transfer that just ended
    /// still counts as running for a moment. Throws `cancelled` if the task is cancelled.
    static func pause() async throws(TowlineError) {
        do { try await Task.sleep(for: .milliseconds(10)) } catch {
            throw ContentCursor.cancelled
        }
    }
}
