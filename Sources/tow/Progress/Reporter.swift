import Glibc
import Synchronization
import TowlineCore
import TowlineEngine

/// A log that turns events of a batch into text. The text is taken from time to time.
protocol ProgressLog: Sendable {
    /// Records that a download has started.
    mutating func started(_ number: Int, _ options: DownloadOptions, now: Duration)
    /// Records the state of a download.
    mutating func progressed(_ number: Int, _ snapshot: TransferSnapshot, now: Duration)
    /// Records a notice about a download.
    mutating func noticed(_ number: Int, _ notice: TransferNotice)
    /// Records one line about a step of a download (`-v`).
    mutating func traced(_ number: Int, _ line: String, now: Duration)
    /// Records the result of a download.
    mutating func ended(_ number: Int, _ result: Result<CompletedTransfer, TowlineError>, now: Duration)
    /// Records the end of the batch.
    mutating func closed(exitStatus: Int32, interrupted: Bool, now: Duration)
    /// Returns whether there is text to write.
    var hasNews: Bool { get }
    /// Returns the text to write now and removes it from the log.
    mutating func take(now: Duration, isLast: Bool) -> String
}

/// An observer of a batch that writes the text of a log on a separate thread.
///
/// Not generic: the runtime builds such a class at its first use, which takes longer than all calls for one small file.
final class Reporter: BatchObserver {
    /// A class that holds the log, because a closure cannot hold a `Mutex`.
    private final class Guarded: Sendable {
        let log: Mutex<any ProgressLog>
        init(_ log: any ProgressLog) { self.log = Mutex(log) }
    }

    private let guarded: Guarded
    private let pump: OutputPump
    private let began: ContinuousClock.Instant
    private let isTimed: Bool

    /// - Parameter interval: the milliseconds between two reads of the log; `nil` to read it after each event.
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

    func progressed(_ number: Int, _ snapshot: TransferSnapshot) {
        tell { $0.progressed(number, OptionNames.add(to: snapshot), now: $1) }
    }

    func noticed(_ number: Int, _ notice: TransferNotice) {
        tell { log, _ in log.noticed(number, OptionNames.add(to: notice)) }
    }

    func traced(_ number: Int, _ line: String) { tell { $0.traced(number, line, now: $1) } }

    func ended(_ number: Int, _ result: Result<CompletedTransfer, TowlineError>) {
        tell { $0.ended(number, result.mapError { OptionNames.add(to: $0) }, now: $1) }
    }

    /// Ends the output. Returns when all text is written; no event may follow.
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

extension PlainLog: ProgressLog {
    mutating func take(now: Duration, isLast: Bool) -> String { take() }
}

extension JSONLog: ProgressLog {
    mutating func closed(exitStatus: Int32, interrupted: Bool, now: Duration) { closed(exitStatus: exitStatus) }

    mutating func take(now: Duration, isLast: Bool) -> String { take() }
}

extension TerminalBoard: ProgressLog {
    /// Does nothing: with `-v`, tow prints lines instead of a board.
    mutating func traced(_ number: Int, _ line: String, now: Duration) {}

    /// Always `true`: the board changes over time, even without an event.
    var hasNews: Bool { true }

    mutating func take(now: Duration, isLast: Bool) -> String {
        let (width, height) = TerminalWindow.size(of: STDERR_FILENO)
        return frame(width: width, height: height, now: now, isLast: isLast)
    }
}

enum TerminalWindow {
    /// Returns the columns and rows of the window, or 80 × 24 if the terminal does not report them. Called for each
    /// frame: this takes a microsecond, and no signal is needed to notice a change.
    static func size(of descriptor: Int32) -> (width: Int, height: Int) {
        var window = winsize()
        guard ioctl(descriptor, UInt(TIOCGWINSZ), &window) == 0, window.ws_col > 0, window.ws_row > 0 else {
            return (80, 24)
        }
        return (Int(window.ws_col), Int(window.ws_row))
    }

    static func isTerminal(_ descriptor: Int32) -> Bool { isatty(descriptor) == 1 }
}
