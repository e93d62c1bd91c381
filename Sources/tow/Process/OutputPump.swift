import Synchronization
import TowlineThreads

/// A writer of text from a source on a separate thread, so that code that reports progress never waits for a terminal.
final class OutputPump: Sendable {
    /// The output and the thread that writes to it.
    private struct Writer {
        var output: OutputDescriptor
        var thread: PlatformThread?
        var isAwake = false
        var isFinishing = false
    }

    /// The time in milliseconds to wait after a write, so that the next write contains more text.
    private static let gatherTime = 5

    private let state: Mutex<Writer>
    /// The milliseconds between two reads of the source and of `isFinishing`; `nil` to read only after `wake`.
    private let interval: Int?
    private let wakeup = AutoResetEvent()
    private let take: @Sendable (_ isLast: Bool) -> String

    /// - Parameters:
    ///   - interval: the milliseconds between two reads of the source; `nil` to read only after `wake`.
    ///   - take: returns the text to write now, each text once.
    init(descriptor: Int32, interval: Int?, take: @escaping @Sendable (_ isLast: Bool) -> String) {
        self.interval = interval
        self.take = take
        state = Mutex(Writer(output: OutputDescriptor(descriptor)))
        if interval != nil { state.withLock { start(&$0) } }
    }

    /// Starts the thread if it does not run yet. Without an interval, the first `wake` starts it: `wake` may never be
    /// called.
    private func start(_ state: inout Writer) {
        guard state.thread == nil, !state.isFinishing else { return }
        state.thread = PlatformThread { [weak self] in self?.pump() }
    }

    /// Notifies the thread that the source has text.
    func wake() {
        let sleeps = state.withLock { state in
            start(&state)
            defer { state.isAwake = true }
            return !state.isAwake
        }
        if sleeps { wakeup.set() }
    }

    /// Writes the remaining text. Returns when it is written.
    func finish() {
        let thread = state.withLock { state in
            state.isFinishing = true
            return state.thread
        }
        wakeup.set()
        thread?.join()
        write(take(true))
    }

    private func pump() {
        while true {
            wakeup.wait(milliseconds: interval)
            while true {
                let isFinishing = state.withLock { state in
                    state.isAwake = false
                    return state.isFinishing
                }
                if isFinishing { return }
                let text = take(false)
                write(text)
                // With an interval, one call of `take` returns all text.
                guard interval == nil, !text.isEmpty else { break }
                gather()
            }
        }
    }

    /// Waits for more text. Otherwise, each line of ten thousand small files would take a wake-up and a write.
    private func gather() {
        state.withLock { $0.isAwake = true }
        // Clear the event, which an earlier `wake` may have set.
        wakeup.wait(milliseconds: 0)
        // From here on, only `finish` sets the event.
        guard !state.withLock(\.isFinishing) else { return }
        wakeup.wait(milliseconds: Self.gatherTime)
    }

    /// Writes text. Only the thread of the pump calls this, and after its end the thread that calls `finish`.
    private func write(_ text: String) {
        guard !text.isEmpty else { return }
        var output = state.withLock { $0.output }
        output.write(text)
        state.withLock { $0.output = output }
    }
}
