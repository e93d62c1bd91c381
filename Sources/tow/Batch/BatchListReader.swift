import Glibc
import Synchronization
import TowlineCore
import TowlineThreads

/// A reader of a list of URLs, only as fast as its entries are requested: a list of millions of lines, or a pipe that
/// never ends, needs little memory.
final class BatchListReader: Sendable {
    private typealias Waiter = CheckedContinuation<BatchEntry?, Never>

    /// The entries that were read from the list and not taken yet, and the caller that waits for one.
    private struct Buffer {
        var waiter: Waiter?
        /// Entries that were read together with a requested one, the next one last.
        var ready: [BatchEntry] = []
        var isStopped = false
        var hasEnded = false
    }

    private let state = Mutex(Buffer())
    private let descriptor: Int32
    private let requests: Int32
    private let requestWriter: Int32

    /// Opens the list; `-` is standard input.
    ///
    /// - Throws: `unusableOption` if the list cannot be opened.
    init(path: String) throws(TowlineError) {
        descriptor = try Self.open(path)
        var ends: [Int32] = [-1, -1]
        guard pipe(&ends) == 0 else { throw Self.unreadable(path) }
        (requests, requestWriter) = (ends[0], ends[1])
        // A read blocks until the writer of the list continues, so it must not run on a thread of the pool.
        guard let thread = PlatformThread({ self.serve() }) else {
            throw TowlineError(
                .unusableOption,
                "cannot start a thread to read the list of URLs, probably because the limit on processes and threads"
                    + " is reached. No download was started. Raise the limit (ulimit -u) and run the command again")
        }
        thread.detach()
    }

    private static func open(_ path: String) throws(TowlineError) -> Int32 {
        if path == "-", fcntl(0, F_GETFL) & O_ACCMODE == O_WRONLY {
            throw TowlineError(
                .unusableOption,
                "cannot read the list of URLs from standard input (-i -) because standard input is closed."
                    + " No download was started. Pipe the list to tow, or give a file")
        }
        let descriptor = path == "-" ? 0 : ByteText.withCString(path) { Glibc.open($0, O_RDONLY | O_CLOEXEC) }
        guard descriptor >= 0 else { throw unreadable(path) }
        return descriptor
    }

    private static func unreadable(_ path: String) -> TowlineError {
        let reason = String(cString: strerror(errno))
        return TowlineError(
            .unusableOption,
            "cannot open the list of URLs '\(TerminalSafeText.make(path))' (-i): \(reason). No download was started")
    }

    /// Reads all lines of a list. Blocks the thread.
    ///
    /// - Returns: the lines, and the `errno` of a failed read.
    /// - Throws: `unusableOption` if the list cannot be opened.
    static func lines(of path: String) throws(TowlineError) -> ([BatchLineSplitter.Line], failure: Int32?) {
        let descriptor = try open(path)
        defer { if descriptor > 0 { close(descriptor) } }
        var (reader, lines) = (DescriptorLines(descriptor: descriptor), [BatchLineSplitter.Line]())
        while let line = reader.next() { lines.append(line) }
        return (lines, reader.failure)
    }

    /// Returns the next entry; `nil` at the end and after `stop`. A failed read is the last entry, with a problem.
    /// Supports one call at a time.
    nonisolated(nonsending) func next() async -> BatchEntry? {
        await withCheckedContinuation { waiter in
            let known = state.withLock { state -> BatchEntry?? in
                if state.isStopped { return .some(nil) }
                if let entry = state.ready.popLast() { return entry }
                if state.hasEnded { return .some(nil) }
                state.waiter = waiter
                return nil
            }
            if let known { return waiter.resume(returning: known) }
            var byte: UInt8 = 0
            _ = write(requestWriter, &byte, 1)
        }
    }

    /// Returns whether `stop` was called.
    var isStopped: Bool { state.withLock { $0.isStopped } }

    /// Makes the pending call of `next`, and each later one, return `nil`.
    func stop() {
        let waiter = state.withLock { state in
            state.isStopped = true
            return state.waiter.take()
        }
        waiter?.resume(returning: nil)
    }

    private func serve() {
        var parser = BatchListParser()
        var lines = DescriptorLines(descriptor: descriptor)
        var byte: UInt8 = 0
        while read(requests, &byte, 1) == 1 {
            var entry: BatchEntry?
            while entry == nil, let line = lines.next() { entry = parser.take(line) }
            if entry == nil { entry = lines.failure.take().map { parser.fail($0) } ?? parser.finish() }
            let answer = entry
            // Return entries from the same read together, to save switches between threads.
            var others: [BatchEntry] = []
            while answer != nil, let line = lines.nextRead() {
                if let entry = parser.take(line) { others.append(entry) }
            }
            let ready = Array(others.reversed())
            let waiter = state.withLock { state in
                state.hasEnded = answer == nil
                state.ready = ready
                return state.waiter.take()
            }
            waiter?.resume(returning: answer)
            if answer == nil { return }
        }
    }
}

/// The lines of a descriptor, read on demand.
private struct DescriptorLines {
    let descriptor: Int32
    private var splitter = BatchLineSplitter()
    private var decoder = UnicodeDecoder()
    private var bytes: ArraySlice<UInt8> = []
    private var hasEnded = false
    /// The `errno` of a failed read; `nil` if no read failed.
    var failure: Int32?

    init(descriptor: Int32) { self.descriptor = descriptor }

    mutating func next() -> BatchLineSplitter.Line? {
        while true {
            if let line = splitter.take(from: &bytes) { return line }
            guard !hasEnded else { return nil }
            fill()
            // Drop an incomplete line after a failed read.
            if hasEnded { return failure == nil ? splitter.finish() : nil }
        }
    }

    /// Returns the next line from bytes that are already read; `nil` if they contain no complete line.
    mutating func nextRead() -> BatchLineSplitter.Line? { splitter.take(from: &bytes) }

    private mutating func fill() {
        var buffer = [UInt8](repeating: 0, count: 16 * 1024)
        while true {
            let count = read(descriptor, &buffer, buffer.count)
            if count < 0 && errno == EINTR { continue }
            // The program that created the pipe may have set O_NONBLOCK for both ends.
            if count < 0 && errno == EAGAIN {
                var ready = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
                poll(&ready, 1, -1)
                continue
            }
            hasEnded = count <= 0
            if count < 0 { failure = errno }
            bytes = decoder.take(buffer[..<max(0, count)])
            return
        }
    }
}
