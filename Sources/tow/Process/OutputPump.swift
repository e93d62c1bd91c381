import Glibc
import Synchronization

/// Writes what a source has to say, from a thread of its own: those who tell of progress never wait for a terminal.
final class OutputPump: Sendable {
    private struct State {
        var output: OutputDescriptor
        var thread: PlatformThread?
        var isAwake = false
        var isFinishing = false
    }

    /// What comes within this time of a write goes with the next one.
    private static let gatherTime = Duration.milliseconds(5)

    private let state: Mutex<State>
    /// Milliseconds between two looks at the source, and at whether it is over; -1: only when woken.
    private let interval: Int32
    /// Whether it is to be woken rather than to look.
    private let isWoken: Bool
    private let wakeReader: Int32
    private let wakeWriter: Int32
    private let take: @Sendable (_ isLast: Bool) -> String

    /// - Parameters:
    ///   - interval: milliseconds between two looks at the source, `nil` to look only when woken.
    ///   - take: gives what is to be written now, and does not give it again.
    init(descriptor: Int32, interval: Int32?, take: @escaping @Sendable (_ isLast: Bool) -> String) {
        var ends: [Int32] = [-1, -1]
        // Nobody can wake it where no descriptor is left: then it looks by itself.
        let canBeWoken = pipe(&ends) == 0
        (wakeReader, wakeWriter) = (ends[0], ends[1])
        self.interval = interval ?? (canBeWoken ? -1 : 100)
        isWoken = interval == nil
        self.take = take
        state = Mutex(State(output: OutputDescriptor(descriptor)))
        if interval != nil { state.withLock { start(&$0) } }
    }

    /// The thread, if there is none yet: one that only writes when woken may never be wanted.
    private func start(_ state: inout State) {
        guard state.thread == nil, !state.isFinishing else { return }
        state.thread = PlatformThread { [weak self] in self?.pump() }
    }

    deinit {
        close(wakeReader)
        close(wakeWriter)
    }

    /// The source has something.
    func wake() {
        let sleeps = state.withLock { state in
            start(&state)
            defer { state.isAwake = true }
            return !state.isAwake
        }
        if sleeps { poke() }
    }

    /// Writes what is left and returns when it is written.
    func finish() {
        let thread = state.withLock { state in
            state.isFinishing = true
            return state.thread
        }
        poke()
        thread?.join()
        write(take(true))
    }

    private func poke() {
        var byte: UInt8 = 0
        _ = Glibc.write(wakeWriter, &byte, 1)
    }

    private func pump() {
        while true {
            rest(milliseconds: interval)
            while true {
                let isFinishing = state.withLock { state in
                    state.isAwake = false
                    return state.isFinishing
                }
                if isFinishing { return }
                let text = take(false)
                write(text)
                // A source that is looked at gives everything at each look.
                guard isWoken, !text.isEmpty else { break }
                gather()
            }
        }
    }

    /// Leaves what follows at once the time to come: of ten thousand small files each line would take a wake-up and a write.
    private func gather() {
        let end = ContinuousClock.now + Self.gatherTime
        state.withLock { $0.isAwake = true }
        while true {
            let left = end - .now
            guard left > .zero, !state.withLock(\.isFinishing) else { return }
            // Who finishes does not wait for it.
            rest(milliseconds: Int32(left / .milliseconds(1)) + 1)
        }
    }

    /// Returns when it is woken, or when that time is over.
    private func rest(milliseconds: Int32) {
        var entry = pollfd(fd: wakeReader, events: Int16(POLLIN), revents: 0)
        guard poll(&entry, 1, milliseconds) > 0 else { return }
        var byte: UInt8 = 0
        _ = read(wakeReader, &byte, 1)
    }

    /// Only the thread of the pump writes, and after it ended the one that finishes.
    private func write(_ text: String) {
        guard !text.isEmpty else { return }
        var output = state.withLock { $0.output }
        output.write(text)
        state.withLock { $0.output = output }
    }
}
