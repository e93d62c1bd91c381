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

    private let state: Mutex<State>
    /// Milliseconds between two looks at the source, and at whether it is over; -1: only when woken.
    private let interval: Int32
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
            var entry = pollfd(fd: wakeReader, events: Int16(POLLIN), revents: 0)
            if poll(&entry, 1, interval) > 0 {
                var byte: UInt8 = 0
                _ = read(wakeReader, &byte, 1)
            }
            let isFinishing = state.withLock { state in
                state.isAwake = false
                return state.isFinishing
            }
            if isFinishing { return }
            write(take(false))
        }
    }

    /// Only the thread of the pump writes, and after it ended the one that finishes.
    private func write(_ text: String) {
        guard !text.isEmpty else { return }
        var output = state.withLock { $0.output }
        output.write(text)
        state.withLock { $0.output = output }
    }
}
