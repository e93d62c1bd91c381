import Foundation
import Synchronization

/// Runs `tow` in a terminal of its own, as a user at a keyboard would. The terminal is the controlling one, so that
/// signals report a change of its size and its end.
final class PseudoTerminal: Sendable {
    struct Failure: Error, CustomStringConvertible { let description: String }

    private struct Output {
        var bytes: [UInt8] = []
        var isOver = false
        var isClosing = false
    }

    /// The side of the keyboard and the screen.
    private let keyboard: Int32
    private let process: pid_t
    private let output = Mutex(Output())
    /// The modes of the terminal before the program started.
    private let modes: [UInt32]

    /// Starts `tow` with these arguments.
    init(_ arguments: [String], columns: UInt16 = 100, rows: UInt16 = 12, environment: [String: String] = [:]) throws {
        var size = winsize(ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0)
        var (ours, theirs): (Int32, Int32) = (-1, -1)
        var name = [CChar](repeating: 0, count: 128)
        guard openpty(&ours, &theirs, &name, nil, &size) == 0 else { throw Failure(description: "no pseudo terminal") }
        // The reading side is notified of the end once the other side is closed everywhere.
        defer { Glibc.close(theirs) }
        for descriptor in [ours, theirs] { _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC) }
        keyboard = ours
        let device = String(decoding: name.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
        modes = Self.modes(keyboard)
        let variables = [
            "PATH": "/usr/bin:/bin", "HOME": "/nonexistent", "LANG": "C.UTF-8", "TERM": "xterm", "NO_COLOR": "1",
        ].merging(environment) { $1 }
        process = try Self.spawn(
            ["/usr/bin/setsid", "--ctty", CommandRun.products.appendingPathComponent("tow").path] + arguments,
            variables.map { $0 + "=" + $1 }, device)
        Thread.detachNewThread { [self] in read() }
    }

    /// Reads until the other side is closed, or this side is to be closed.
    private func read() {
        var buffer = [UInt8](repeating: 0, count: 65536)
        while true {
            // The file is not closed while it is being read.
            var entry = pollfd(fd: keyboard, events: Int16(POLLIN), revents: 0)
            let ready = poll(&entry, 1, 20)
            if output.withLock({ $0.isClosing }) {
                Glibc.close(keyboard)
                return output.withLock { $0.isOver = true }
            }
            guard ready > 0 else { continue }
            let count = Glibc.read(keyboard, &buffer, buffer.count)
            if count < 0 && errno == EINTR { continue }
            output.withLock { output in
                if count > 0 { output.bytes += buffer[..<count] } else { output.isOver = true }
            }
            if count <= 0 { return }
        }
    }

    /// `setsid` does not fork unless it leads a group, so the process is `tow`'s own.
    private static func spawn(_ words: [String], _ environment: [String], _ device: String) throws -> pid_t {
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_addopen(&actions, 0, device, O_RDWR | O_NOCTTY, 0)
        posix_spawn_file_actions_adddup2(&actions, 0, 1)
        posix_spawn_file_actions_adddup2(&actions, 0, 2)
        var process: pid_t = 0
        let arguments = words.map { strdup($0) } + [nil]
        let variables = environment.map { strdup($0) } + [nil]
        defer { for word in arguments + variables { free(word) } }
        guard posix_spawn(&process, words[0], &actions, nil, arguments, variables) == 0 else {
            throw Failure(description: "\(words[0]) cannot be run")
        }
        return process
    }

    /// The output so far.
    var text: String { output.withLock { String(decoding: $0.bytes, as: UTF8.self) } }

    /// The lines that a user sees: the last frame that was drawn.
    var screen: [String] {
        let frame = text.components(separatedBy: "\u{1B}[H").last ?? ""
        return frame.replacingOccurrences(of: "\u{1B}[J", with: "").components(separatedBy: "\u{1B}[K\r\n")
            .map { $0.replacingOccurrences(of: "\u{1B}[K", with: "") }
    }

    func press(_ keys: String) {
        _ = Array(keys.utf8).withUnsafeBytes { write(keyboard, $0.baseAddress, $0.count) }
    }

    func resize(columns: UInt16, rows: UInt16) {
        var size = winsize(ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0)
        _ = ioctl(keyboard, UInt(TIOCSWINSZ), &size)
    }

    func signal(_ number: Int32) { kill(process, number) }

    /// Closes the terminal, as closing its window does.
    func close() { output.withLock { $0.isClosing = true } }

    /// Waits until the drawn lines fulfil `fits`; kills the program and throws if they never do.
    func wait(
        within patience: Duration = .seconds(60), line: Int = #line, _ fits: ([String]) -> Bool
    ) async throws {
        let end = ContinuousClock.now + patience
        while !fits(screen) {
            guard ContinuousClock.now < end else {
                kill(process, SIGKILL)
                throw Failure(description: "line \(line), not seen; instead:\n" + screen.joined(separator: "\n"))
            }
            try await Task.sleep(for: .milliseconds(20))
        }
    }

    /// Waits for the end. Returns the exit status and whether the terminal has its earlier modes again.
    func end() async throws -> (status: Int32, isRestored: Bool) {
        let before = ContinuousClock.now + .seconds(60)
        var status: Int32 = 0
        while waitpid(process, &status, WNOHANG) != process {
            guard ContinuousClock.now < before else { throw Failure(description: "it does not end") }
            try await Task.sleep(for: .milliseconds(10))
        }
        // The last output may not have been read yet; the terminal's own end comes after it.
        while !output.withLock({ $0.isOver }), ContinuousClock.now < before {
            try await Task.sleep(for: .milliseconds(10))
        }
        return (status & 0x7F == 0 ? status >> 8 & 0xFF : 128 + status & 0x7F, isRestored)
    }

    private static func modes(_ terminal: Int32) -> [UInt32] {
        var settings = termios()
        guard tcgetattr(terminal, &settings) == 0 else { return [] }
        return [settings.c_iflag, settings.c_oflag, settings.c_cflag, settings.c_lflag]
    }

    /// Returns whether the alternate screen was left, with its cursor and line wrapping, and keys are echoed again.
    private var isRestored: Bool {
        Self.modes(keyboard) == modes && !modes.isEmpty && text.contains("\u{1B}[?1049h")
            && text.hasSuffix("\u{1B}[0m\u{1B}[?7h\u{1B}[?25h\u{1B}[?1049l")
    }
}
