import TowlineCore
import TowlineEngine

/// A reader at a transfer; lets go of it at the end.
final class TransferReading: Sendable {
    let runner: TransferRunner
    private let number: Int
    private let pulse: AsyncStream<Void>

    init(_ runner: TransferRunner) async {
        self.runner = runner
        (number, pulse) = await runner.openReader()
    }

    deinit { Task { [runner, number] in await runner.closeReader(number) } }

    /// What the transfer has, once its first answer came; `nil` if it ended before that.
    var begun: TransferContent? {
        get async {
            repeat {
                let content = await runner.content
                if content.isBegun { return content }
            } while await more()
            return nil
        }
    }

    /// Waits until more may be there.
    ///
    /// - Returns: `false` if the transfer is over.
    func more() async -> Bool {
        var iterator = pulse.makeAsyncIterator()
        return await iterator.next() != nil
    }

    /// What is at the beginning of a range.
    func read(_ range: ByteRange, atMost count: Int, generation: Int) async throws(TowlineError) -> TransferRunner.Piece
    {
        try await runner.read(number, range, atMost: count, generation: generation)
    }

    /// A transfer that is over is in the list as running for a moment more.
    static func pause() async throws(TowlineError) {
        do { try await Task.sleep(for: .milliseconds(10)) } catch {
            throw ContentCursor.cancelled
        }
    }
}
