import Glibc
import Synchronization

/// A terminal taken over as a whole: its other screen, no cursor, each key at once and unseen. Whatever happens, it is
/// given back as it was.
final class FullScreen: Sendable {
    /// How the terminal was; there while it is taken over. Held for moments only: what is written waits elsewhere.
    private let before = Mutex<termios?>(nil)
    private let pen: Mutex<OutputDescriptor>
    private let input: Int32
    private let output: Int32

    /// The other screen (xterm's 1049 keeps the cursor's place too), no cursor, and no wrapping of lines.
    private static let entrance = "\u{1B}[?1049h\u{1B}[?25l\u{1B}[?7l\u{1B}[2J"
    private static let exit = "\u{1B}[0m\u{1B}[?7h\u{1B}[?25h\u{1B}[?1049l"

    init(input: Int32 = STDIN_FILENO, output: Int32 = STDOUT_FILENO) {
        self.input = input
        self.output = output
        pen = Mutex(OutputDescriptor(output))
    }

    deinit { leave() }

    /// Takes the terminal over, unless that is so already or another program is in front.
    func enter() {
        let isNew = before.withLock { before in
            var settings = termios()
            guard before == nil, isInFront, tcgetattr(input, &settings) == 0 else { return false }
            let found = settings
            // Ctrl-C and Ctrl-Z come as keys: what they would do to a terminal in this state has to be undone first.
            cfmakeraw(&settings)
            guard tcsetattr(input, TCSANOW, &settings) == 0 else { return false }
            before = found
            return true
        }
        if isNew { pen.withLock { $0.write(Self.entrance) } }
    }

    /// Gives it back. Does nothing if it is not taken over.
    func leave() {
        guard let found = take() else { return }
        pen.withLock { $0.write(Self.exit) }
        restore(found)
    }

    /// Gives it back without waiting for anything: neither for a thread that draws nor for a terminal that takes no
    /// output.
    func abandon() {
        guard let found = take() else { return }
        restore(found)
        var entry = pollfd(fd: output, events: Int16(POLLOUT), revents: 0)
        guard poll(&entry, 1, 0) > 0, entry.revents & Int16(POLLOUT) != 0 else { return }
        var text = OutputDescriptor(output)
        text.write(Self.exit)
    }

    /// Writes, while it is taken over.
    ///
    /// - Returns: whether that was done.
    func draw(_ text: String) -> Bool {
        guard before.withLock({ $0 != nil }), isInFront else { return false }
        pen.withLock { $0.write(text) }
        return true
    }

    /// How the terminal was, for whoever gives it back, and for nobody after. In the background the terminal is
    /// another's, who has set it up for itself.
    private func take() -> termios? {
        let found = before.withLock { before in
            defer { before = nil }
            return before
        }
        return isInFront ? found : nil
    }

    /// Whether this program may use the terminal: it has no controlling terminal, or is not in the background.
    private var isInFront: Bool {
        let group = tcgetpgrp(input)
        return group == -1 || group == getpgrp()
    }

    private func restore(_ before: termios) {
        var settings = before
        _ = tcsetattr(input, TCSANOW, &settings)
    }
}
