import FaultServer
import Foundation
import Synchronization

/// The example program as a child process that reads commands and prints lines. Tests wait for lines, not for a time.
///
/// `@unchecked Sendable`: only the test uses `Process` and `FileHandle`. The reading thread uses only the lines, under
/// their lock.
final class TerminalRun: @unchecked Sendable {
    struct Failure: Error, CustomStringConvertible {
        let description: String
    }

    private struct Lines {
        var all: [String] = []
        var isOver = false
        var waiters: [CheckedContinuation<Void, Never>] = []
    }

    private let process = Process()
    private let commands = Pipe()
    private let output = Pipe()
    private let lines = Mutex(Lines())
    private let ended: AsyncStream<Void>

    /// Starts the program and waits until the list is open.
    static func start(_ place: Place, hold: Bool = false) async throws -> TerminalRun {
        let run = TerminalRun(place, hold: hold)
        try run.begin()
        _ = try await run.line(after: 0) { $0 == "ready" }
        return run
    }

    /// The directories of the list and of the downloaded files.
    struct Place {
        let root: URL
        var state: String { root.appendingPathComponent("state").path }
        var downloads: String { root.appendingPathComponent("downloads").path }

        init() throws {
            root = FileManager.default.temporaryDirectory.appendingPathComponent("origin-\(UUID().uuidString)")
            try FileManager.default.createDirectory(
                atPath: root.appendingPathComponent("downloads").path, withIntermediateDirectories: true)
        }

        func remove() { try? FileManager.default.removeItem(at: root) }

        /// Returns whether the file has exactly the bytes of the version.
        func holds(_ name: String, _ version: Version) -> Bool {
            let path = downloads + "/" + name
            let mismatch = try? version.content.firstMismatch(inFile: path, length: version.length)
            return mismatch == .some(nil)
        }
    }

    private init(_ place: Place, hold: Bool) {
        let program = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath().deletingLastPathComponent()
            .appendingPathComponent("towline-terminal").path
        process.executableURL = URL(fileURLWithPath: program)
        process.arguments = [place.state, place.downloads] + (hold ? ["--hold"] : [])
        process.standardInput = commands
        process.standardOutput = output
        process.environment = ["PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/nonexistent", "no_proxy": "*"]
        let (stream, continuation) = AsyncStream.makeStream(of: Void.self)
        ended = stream
        process.terminationHandler = { _ in continuation.finish() }
    }

    private func begin() throws {
        try process.run()
        let reading = output.fileHandleForReading
        Thread.detachNewThread { [self] in
            var rest: [UInt8] = []
            while true {
                let data = reading.availableData
                if data.isEmpty { break }
                rest += data
                while let end = rest.firstIndex(of: 0x0A) {
                    add(String(decoding: rest[..<end], as: UTF8.self))
                    rest.removeFirst(end + 1)
                }
            }
            add(nil)
        }
    }

    private func add(_ line: String?) {
        let waiters = lines.withLock { lines in
            if let line { lines.all.append(line) } else { lines.isOver = true }
            defer { lines.waiters = [] }
            return lines.waiters
        }
        for waiter in waiters { waiter.resume() }
    }

    /// The number of lines that the program has printed.
    var position: Int { lines.withLock { $0.all.count } }

    /// Sends a command to the program.
    func send(_ command: String) throws {
        try commands.fileHandleForWriting.write(contentsOf: Data((command + "\n").utf8))
    }

    /// Waits for the first line at or after a position that fits, and returns the line.
    func line(
        after start: Int = 0, within patience: Duration = .seconds(60), _ fits: (String) -> Bool
    ) async throws -> String {
        let deadline = ContinuousClock.now + patience
        let alarm = Task {
            try await Task.sleep(until: deadline)
            wake()
        }
        defer { alarm.cancel() }
        var next = start
        while true {
            let (fresh, isOver) = lines.withLock { (Array($0.all.dropFirst(next)), $0.isOver) }
            if let line = fresh.first(where: fits) { return line }
            next += fresh.count
            guard !isOver, ContinuousClock.now < deadline else {
                let last = lines.withLock { $0.all.suffix(20).joined(separator: "\n") }
                throw Failure(description: "no such line; the last ones:\n\(last)")
            }
            await withCheckedContinuation { continuation in
                let isNews = lines.withLock { lines in
                    if lines.all.count > next || lines.isOver || ContinuousClock.now >= deadline { return true }
                    lines.waiters.append(continuation)
                    return false
                }
                if isNews { continuation.resume() }
            }
        }
    }

    private func wake() {
        let waiters = lines.withLock { lines in
            defer { lines.waiters = [] }
            return lines.waiters
        }
        for waiter in waiters { waiter.resume() }
    }

    /// Adds a URL and returns the identifier of the download.
    func add(_ link: String, _ options: String = "") async throws -> String {
        let start = position
        try send("add \(link) \(options)")
        let line = try await line(after: start) { $0.hasPrefix("added ") }
        return String(line.dropFirst("added ".count))
    }

    /// Returns the entry of each download in the list.
    func list() async throws -> [Row] {
        let start = position
        try send("list")
        _ = try await line(after: start) { $0 == "end" }
        let text = lines.withLock { Array($0.all.dropFirst(start)) }
        return text.prefix { $0 != "end" }.compactMap(Row.init)
    }

    /// Waits for a line about the download that fits.
    @discardableResult
    func row(
        _ id: String, after start: Int = 0, within patience: Duration = .seconds(60), _ fits: (Row) -> Bool
    ) async throws -> Row {
        let line = try await line(after: start, within: patience) { line in
            Row(line).map { $0.id == id && fits($0) } ?? false
        }
        guard let row = Row(line) else { throw Failure(description: line) }
        return row
    }

    /// Returns the entry of the download when it fits. Checks the list first, because no line follows without a change.
    @discardableResult
    func settledRow(
        _ id: String, within patience: Duration = .seconds(60), _ fits: (Row) -> Bool
    ) async throws -> Row {
        let start = position
        if let row = try await list().first(where: { $0.id == id }), fits(row) { return row }
        return try await row(id, after: start, within: patience, fits)
    }

    /// Kills the program with SIGKILL, without a warning, and waits for its end.
    func kill() async {
        Foundation.kill(process.processIdentifier, SIGKILL)
        for await _ in ended {}
    }

    /// Sends `quit`, waits for the end of the program, and returns its exit status.
    @discardableResult
    func quit() async throws -> Int32 {
        try send("quit")
        for await _ in ended {}
        return process.terminationStatus
    }
}

/// An entry of the list, as the program prints it.
struct Row: Equatable {
    let id: String
    let state: String
    let percent: Int?
    let held: Int64
    let length: Int64?
    let name: String
    let rest: String

    /// Parses a line; `nil` if the line does not describe a download.
    init?(_ line: String) {
        let words = line.split(separator: " ", maxSplits: 6).map(String.init)
        guard words.count >= 6, words[0].count == 26, words[3].hasPrefix("[") else { return nil }
        let bytes = words[4].split(separator: "/")
        guard bytes.count == 2, let held = Int64(bytes[0]) else { return nil }
        id = words[0]
        state = words[1]
        percent = Int(words[2].dropLast())
        self.held = held
        length = Int64(bytes[1])
        name = words[5]
        rest = words.count > 6 ? words[6] : ""
    }
}
