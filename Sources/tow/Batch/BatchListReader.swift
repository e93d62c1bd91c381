import Glibc
import Synchronization
import TowlineCore

/// Reads a list of URLs as fast as its entries are asked for, and not faster: a list of millions of lines, or a pipe
/// that never ends, takes the memory of one entry.
final class BatchListReader: Sendable {
    private typealias Waiter = CheckedContinuation<BatchEntry?, Never>

    private struct State {
        var waiter: Waiter?
        /// Entries that came with one that was asked for, the next one last.
        var ready: [BatchEntry] = []
        var isStopped = false
        var hasEnded = false
    }

    private let state = Mutex(State())
    private let descriptor: Int32
    private let requests: Int32
    private let requestWriter: Int32

    /// Opens the list; `-` is standard input.
    ///
    /// - Throws: `unusableOption` if it cannot be opened.
    init(path: String) throws(TowlineError) {
        descriptor = path == "-" ? 0 : ByteText.withCString(path) { open($0, O_RDONLY | O_CLOEXEC) }
        if path == "-", fcntl(0, F_GETFL) & O_ACCMODE == O_WRONLY {
            throw TowlineError(
                .unusableOption,
                "cannot read the list of URLs from standard input (-i -) because standard input is closed."
                    + " No download was started. Pipe the list to tow, or give a file")
        }
        var ends: [Int32] = [-1, -1]
        guard descriptor >= 0, pipe(&ends) == 0 else {
            let reason = String(cString: strerror(errno))
            throw TowlineError(
                .unusableOption,
                "cannot open the list of URLs '\(TerminalSafeText.make(path))' (-i): \(reason)."
                    + " No download was started")
        }
        (requests, requestWriter) = (ends[0], ends[1])
        // Reading blocks as long as the one who writes the list likes: not on a thread of the pool.
        guard let thread = PlatformThread({ self.serve() }) else {
            throw TowlineError(
                .unusableOption,
                "cannot start a thread to read the list of URLs, probably because the limit on processes and threads"
                    + " is reached. No download was started. Raise the limit (ulimit -u) and run the command again")
        }
        thread.detach()
    }

    /// The next entry; `nil` at the end and once stopped. A read that fails is the last entry, with a problem. One call at a time.
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

    /// Whether it was stopped before its end.
    var isStopped: Bool { state.withLock { $0.isStopped } }

    /// Makes the call that waits, and each later one, give `nil`.
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
            // What was read with it costs no second way here and back.
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

/// The lines of a descriptor, read when asked for.
private struct DescriptorLines {
    let descriptor: Int32
    private var splitter = BatchLineSplitter()
    private var decoder = UnicodeDecoder()
    private var bytes: ArraySlice<UInt8> = []
    private var hasEnded = false
    /// Why nothing more can be read, if that is not the end.
    var failure: Int32?

    init(descriptor: Int32) { self.descriptor = descriptor }

    mutating func next() -> BatchLineSplitter.Line? {
        while true {
            if let line = splitter.take(from: &bytes) { return line }
            guard !hasEnded else { return nil }
            fill()
            // Half a line is none.
            if hasEnded { return failure == nil ? splitter.finish() : nil }
        }
    }

    /// The next line of what was read already.
    mutating func nextRead() -> BatchLineSplitter.Line? { splitter.take(from: &bytes) }

    private mutating func fill() {
        var buffer = [UInt8](repeating: 0, count: 16 * 1024)
        while true {
            let count = read(descriptor, &buffer, buffer.count)
            if count < 0 && errno == EINTR { continue }
            // The program that made the pipe may have set O_NONBLOCK for both ends.
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
