import Glibc
import Synchronization
import TowlineCore
import TowlineEngine

/// What has happened, as text that is taken from time to time.
protocol ProgressLog: Sendable {
    /// A download's turn has come.
    mutating func started(_ number: Int, _ options: DownloadOptions, now: Duration)
    /// Where it stands.
    mutating func progressed(_ number: Int, _ snapshot: TransferSnapshot, now: Duration)
    /// Something worth a sentence.
    mutating func noticed(_ number: Int, _ notice: TransferNotice)
    /// One line about a step of a download (`-v`).
    mutating func traced(_ number: Int, _ line: String, now: Duration)
    /// It is over.
    mutating func ended(_ number: Int, _ result: Result<CompletedTransfer, TowlineError>, now: Duration)
    /// Everything is over.
    mutating func closed(exitStatus: Int32, interrupted: Bool, now: Duration)
    /// Whether there is something to write.
    var hasNews: Bool { get }
    /// What is to be written now; not given again.
    mutating func take(now: Duration, isLast: Bool) -> String
}

/// Hears of a batch and writes what a log makes of it, from a thread of its own.
///
/// Not generic: such a class is put together when it is first used, which takes longer than all calls for one small file.
final class Reporter: ClosableObserver {
    /// Behind a class, because a closure can hold no `Mutex`.
    private final class Guarded: Sendable {
        let log: Mutex<any ProgressLog>
        init(_ log: any ProgressLog) { self.log = Mutex(log) }
    }

    private let guarded: Guarded
    private let pump: OutputPump
    private let began: ContinuousClock.Instant
    private let isTimed: Bool

    /// - Parameter interval: milliseconds between two looks at the log; `nil` to look whenever something happened.
    init(_ log: any ProgressLog, descriptor: Int32, interval: Int?) {
        let guarded = Guarded(log)
        let began = ContinuousClock.now
        self.guarded = guarded
        self.began = began
        isTimed = interval != nil
        pump = OutputPump(descriptor: descriptor, interval: interval) { isLast in
            guarded.log.withLock { $0.take(now: ContinuousClock.now - began, isLast: isLast) }
        }
    }

    func started(_ number: Int, _ options: DownloadOptions) { tell { $0.started(number, options, now: $1) } }

    func progressed(_ number: Int, _ snapshot: TransferSnapshot) { tell { $0.progressed(number, snapshot, now: $1) } }

    func noticed(_ number: Int, _ notice: TransferNotice) { tell { log, _ in log.noticed(number, notice) } }

    func traced(_ number: Int, _ line: String) { tell { $0.traced(number, line, now: $1) } }

    func ended(_ number: Int, _ result: Result<CompletedTransfer, TowlineError>) {
        tell { $0.ended(number, result, now: $1) }
    }

    func close(exitStatus: Int32, interrupted: Bool) {
        let now = ContinuousClock.now - began
        guarded.log.withLock { $0.closed(exitStatus: exitStatus, interrupted: interrupted, now: now) }
        pump.finish()
    }

    private func tell(_ body: (inout any ProgressLog, Duration) -> Void) {
        let now = ContinuousClock.now - began
        let hasNews = guarded.log.withLock { log in
            body(&log, now)
            return log.hasNews
        }
        if !isTimed, hasNews { pump.wake() }
    }
}

/// An observer that is told when everything is over.
protocol ClosableObserver: BatchObserver {
    /// Nothing follows; returns when everything is written.
    func close(exitStatus: Int32, interrupted: Bool)
}

extension PlainLog: ProgressLog {
    mutating func take(now: Duration, isLast: Bool) -> String { take() }
}

extension JSONLog: ProgressLog {
    mutating func closed(exitStatus: Int32, interrupted: Bool, now: Duration) { closed(exitStatus: exitStatus) }

    mutating func take(now: Duration, isLast: Bool) -> String { take() }
}

extension TerminalBoard: ProgressLog {
    /// Not used: with `-v`, lines are printed instead.
    mutating func traced(_ number: Int, _ line: String, now: Duration) {}

    /// It moves on by itself.
    var hasNews: Bool { true }

    mutating func take(now: Duration, isLast: Bool) -> String {
        let (width, height) = TerminalWindow.size(of: STDERR_FILENO)
        return frame(width: width, height: height, now: now, isLast: isLast)
    }
}

/// The window of a terminal.
enum TerminalWindow {
    /// Its columns and rows; 80 × 24 where it does not say. Asked for each frame: that costs a microsecond, and no
    /// signal is needed to notice a change.
    static func size(of descriptor: Int32) -> (width: Int, height: Int) {
        var window = winsize()
        guard ioctl(descriptor, UInt(TIOCGWINSZ), &window) == 0, window.ws_col > 0, window.ws_row > 0 else {
            return (80, 24)
        }
        return (Int(window.ws_col), Int(window.ws_row))
    }

    /// Whether it is one.
    static func isTerminal(_ descriptor: Int32) -> Bool { isatty(descriptor) == 1 }
}
