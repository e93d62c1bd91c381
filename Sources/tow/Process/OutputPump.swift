import Synchronization
import TowlineThreads

/// Writes what a source has to say, from a thread of its own: those who tell of progress never wait for a terminal.
final class OutputPump: Sendable {
    private struct State {
        var output: OutputDescriptor
        var thread: PlatformThread?
        var isAwake = false
        var isFinishing = false
    }

    /// What comes within so many milliseconds of a write goes with the next one.
    private static let gatherTime = 5

    private let state: Mutex<State>
    /// Milliseconds between two looks at the source, and at whether it is over; `nil`: only when woken.
    private let interval: Int?
    private let wakeup = AutoResetEvent()
    private let take: @Sendable (_ isLast: Bool) -> String

    /// - Parameters:
    ///   - interval: milliseconds between two looks at the source, `nil` to look only when woken.
    ///   - take: gives what is to be written now, and does not give it again.
    init(descriptor: Int32, interval: Int?, take: @escaping @Sendable (_ isLast: Bool) -> String) {
        self.interval = interval
        self.take = take
        state = Mutex(State(output: OutputDescriptor(descriptor)))
        if interval != nil { state.withLock { start(&$0) } }
    }

    /// The thread, if there is none yet: one that only writes when woken may never be wanted.
    private func start(_ state: inout State) {
        guard state.thread == nil, !state.isFinishing else { return }
        state.thread = PlatformThread { [weak self] in self?.pump() }
    }

    /// The source has something.
    func wake() {
        let sleeps = state.withLock { state in
            start(&state)
            defer { state.isAwake = true }
            return !state.isAwake
        }
        if sleeps { wakeup.set() }
    }

    /// Writes what is left and returns when it is written.
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
                // A source that is looked at gives everything at each look.
                guard interval == nil, !text.isEmpty else { break }
                gather()
            }
        }
    }

    /// Leaves what follows at once the time to come: of ten thousand small files each line would take a wake-up and a write.
    private func gather() {
        state.withLock { $0.isAwake = true }
        // Of a call that came before nothing is to be heard here.
        wakeup.wait(milliseconds: 0)
        // From here on only who finishes calls.
        guard !state.withLock(\.isFinishing) else { return }
        wakeup.wait(milliseconds: Self.gatherTime)
    }

    /// Only the thread of the pump writes, and after it ended the one that finishes.
    private func write(_ text: String) {
        guard !text.isEmpty else { return }
        var output = state.withLock { $0.output }
        output.write(text)
        state.withLock { $0.output = output }
    }
}
