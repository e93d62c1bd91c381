import FaultServer
import Foundation
import Synchronization
import Testing

/// An example program as a child process that reads commands and prints lines. Tests wait for lines, not for a time.
///
/// `@unchecked Sendable`: only the test uses `Process` and `FileHandle`. The reading thread uses only the lines, under
/// their lock.
final class ExampleRun: @unchecked Sendable {
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

    /// The directory of the built programs.
    static let products = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath().deletingLastPathComponent()

    /// Starts a program.
    ///
    /// - Parameter prefix: a command that runs the program, such as `unshare -n`.
    init(_ example: Example, _ arguments: [String], prefix: [String] = []) throws {
        let words = prefix + [Self.products.appendingPathComponent(example.program).path] + arguments
        process.executableURL = URL(fileURLWithPath: words[0])
        process.arguments = Array(words.dropFirst())
        process.standardInput = commands
        process.standardOutput = output
        // URLSession creates a cache in the home directory.
        let home = FileManager.default.temporaryDirectory.appendingPathComponent("towline-examples").path
        process.environment = ["PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": home, "no_proxy": "*"]
        let (stream, continuation) = AsyncStream.makeStream(of: Void.self)
        ended = stream
        process.terminationHandler = { _ in continuation.finish() }
        try begin()
    }

    var identifier: Int32 { process.processIdentifier }

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

    /// Returns the lines from a position.
    func output(after start: Int = 0) -> [String] { lines.withLock { Array($0.all.dropFirst(start)) } }

    /// Waits for a line about a file that fits.
    ///
    /// - Parameter name: the name of the file; empty for a program with one file.
    @discardableResult
    func row(
        _ name: String = "", after start: Int = 0, within patience: Duration = .seconds(60),
        _ fits: (Row) -> Bool
    ) async throws -> Row {
        let line = try await line(after: start, within: patience) { line in
            Row(line).map { $0.name == name && fits($0) } ?? false
        }
        guard let row = Row(line) else { throw Failure(description: line) }
        return row
    }

    /// Waits for the line that reports the final path of a file, checks that the path exists at this moment, and
    /// returns the path.
    @discardableResult
    func path(after start: Int = 0, within patience: Duration = .seconds(60), report: String) async throws -> String {
        let line = try await line(after: start, within: patience) { $0.contains(report) }
        let rest = line.components(separatedBy: report).last ?? ""
        let path = rest.components(separatedBy: ", ").first ?? rest
        #expect(FileManager.default.fileExists(atPath: path), "\(line)")
        return path
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

/// An example program.
enum Example: String, CaseIterable, Sendable {
    case pauseAndResume = "towline-pause-and-resume"
    case fileList = "towline-file-list"
    case oneObjectPerURL = "towline-one-object-per-url"
    case background = "towline-background"
    case archive = "towline-archive"

    var program: String { rawValue }
}

/// The directory of an example program: its list and its files.
struct Place {
    let root: URL
    var path: String { root.path }

    init() throws {
        root = FileManager.default.temporaryDirectory.appendingPathComponent("origin-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: root, withIntermediateDirectories: true)
    }

    func remove() { try? FileManager.default.removeItem(at: root) }

    /// Returns the names in the directory, without the list of downloads.
    func names() throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: path).filter { $0 != "list" }.sorted()
    }

    /// Returns whether the file has exactly the bytes of the version.
    func holds(_ name: String, _ version: Version) -> Bool {
        version.content.matches(file: path + "/" + name, length: version.length)
    }
}

/// A file as the programs print it: `1 NAME 40% 3200000 of 8000000 bytes, waiting(network): REASON`. Some programs
/// print no number, or a progress bar instead of the name. The URL is printed while the name is unknown.
struct Row: Equatable {
    let number: String?
    /// The name of the file; empty if the program shows a progress bar instead.
    let name: String
    let percent: Int?
    let held: Int64
    let length: Int64?
    let state: String

    /// Parses a line; `nil` if the line does not describe a file.
    init?(_ line: String) {
        // A name can contain spaces, and a reason can follow the state.
        let pattern = /(?:(\d+) )?(.+) (\d+|\?)% (\d+) of (\d+|\?) bytes, ([^ :]+)(: .*)?/
        guard let match = line.wholeMatch(of: pattern), let held = Int64(match.4) else { return nil }
        number = match.1.map { String($0) }
        let source = String(match.2)
        name = source.hasPrefix("[") ? "" : source.components(separatedBy: "/").last ?? ""
        percent = Int(match.3)
        self.held = held
        length = Int64(match.5)
        state = String(match.6)
    }
}
