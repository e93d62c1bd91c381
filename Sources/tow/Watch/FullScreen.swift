import Glibc
import Synchronization

/// A terminal that `tow watch` takes over: its alternate screen, no cursor, and keys that arrive one at a time and are
/// not echoed. The terminal is restored in every case.
final class FullScreen: Sendable {
    /// The terminal settings from before, or `nil` while the terminal is not taken over. Held only briefly: writing
    /// holds `pen`.
    private let before = Mutex<termios?>(nil)
    private let pen: Mutex<OutputDescriptor>
    private let input: Int32
    private let output: Int32

    /// The sequence for the alternate screen (xterm's 1049 also saves the cursor position), no cursor, and no line
    /// wrap.
    private static let entrance = "\u{1B}[?1049h\u{1B}[?25l\u{1B}[?7l\u{1B}[2J"
    private static let exit = "\u{1B}[0m\u{1B}[?7h\u{1B}[?25h\u{1B}[?1049l"

    init(input: Int32 = STDIN_FILENO, output: Int32 = STDOUT_FILENO) {
        self.input = input
        self.output = output
        pen = Mutex(OutputDescriptor(output))
    }

    deinit { leave() }

    /// Takes over the terminal. Does nothing if it is already taken over or another program is in the foreground.
    func enter() {
        let isNew = before.withLock { before in
            var settings = termios()
            guard before == nil, isInFront, tcgetattr(input, &settings) == 0 else { return false }
            let found = settings
            // Ctrl-C and Ctrl-Z arrive as keys: the terminal must be restored before they take their usual effect.
            cfmakeraw(&settings)
            guard tcsetattr(input, TCSANOW, &settings) == 0 else { return false }
            before = found
            return true
        }
        if isNew { pen.withLock { $0.write(Self.entrance) } }
    }

    /// Restores the terminal. Does nothing if it is not taken over.
    func leave() {
        guard let found = take() else { return }
        pen.withLock { $0.write(Self.exit) }
        restore(found)
    }

    /// Restores the terminal without waiting for a thread that draws or for a terminal that accepts no output.
    func abandon() {
        guard let found = take() else { return }
        restore(found)
        var entry = pollfd(fd: output, events: Int16(POLLOUT), revents: 0)
        guard poll(&entry, 1, 0) > 0, entry.revents & Int16(POLLOUT) != 0 else { return }
        var text = OutputDescriptor(output)
        text.write(Self.exit)
    }

    /// Writes text to the terminal while it is taken over.
    ///
    /// - Returns: `false` if nothing was written, because the terminal is not taken over or this program is in the
    ///   background.
    func draw(_ text: String) -> Bool {
        guard before.withLock({ $0 != nil }), isInFront else { return false }
        pen.withLock { $0.write(text) }
        return true
    }

    /// Returns the settings to restore, and only to the first caller. Returns `nil` in the background: another program
    /// then uses the terminal with its own settings.
    private func take() -> termios? {
        let found = before.withLock { before in
            defer { before = nil }
            return before
        }
        return isInFront ? found : nil
    }

    /// Returns whether this program may use the terminal: it has no controlling terminal, or is not in the background.
    private var isInFront: Bool {
        let group = tcgetpgrp(input)
        return group == -1 || group == getpgrp()
    }

    private func restore(_ before: termios) {
        var settings = before
        _ = tcsetattr(input, TCSANOW, &settings)
    }
}
