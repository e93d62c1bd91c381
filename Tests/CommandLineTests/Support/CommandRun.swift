import Foundation
import Testing

/// One run of the built `tow`. Its output goes to files, so that no pipe can fill up.
final class CommandRun {
    /// The result of the run.
    struct Result {
        let status: Int32
        let stdout: Data
        let stderr: String

        var text: String { String(decoding: stdout, as: UTF8.self) }
        /// The JSON objects on standard output, one per line.
        var objects: [[String: Any]] {
            get throws {
                try text.split(separator: "\n").map { line in
                    let value = try JSONSerialization.jsonObject(with: Data(line.utf8))
                    return try (value as? [String: Any]) ?? { throw NotAnObject(line: String(line)) }()
                }
            }
        }
    }

    struct NotAnObject: Error { let line: String }

    /// The directory of the build products, which also contains the test bundle.
    static let products = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath().deletingLastPathComponent()

    let process = Process()
    private let output: URL
    private let errors: URL
    private let ended: AsyncStream<Void>

    /// Starts the command, or another `program`. No test waits for a program in another way: with two threads for all
    /// tests, two that block stop the servers of the tests, too.
    init(
        _ arguments: [String], input: FileHandle? = nil, directory: URL? = nil, environment: [String: String] = [:],
        program: URL = products.appendingPathComponent("tow")
    ) throws {
        let name = UUID().uuidString
        let place = FileManager.default.temporaryDirectory
        output = place.appendingPathComponent(name + ".out")
        errors = place.appendingPathComponent(name + ".err")
        for file in [output, errors] { try Data().write(to: file) }
        process.executableURL = program
        process.arguments = arguments
        process.standardInput = input ?? FileHandle.nullDevice
        process.standardOutput = try FileHandle(forWritingTo: output)
        process.standardError = try FileHandle(forWritingTo: errors)
        process.currentDirectoryURL = directory
        var variables = ["PATH": "/usr/bin:/bin", "HOME": "/nonexistent", "LANG": "C.UTF-8", "COLUMNS": "80"]
        variables.merge(environment) { $1 }
        process.environment = variables
        let (stream, continuation) = AsyncStream.makeStream(of: Void.self)
        ended = stream
        process.terminationHandler = { _ in continuation.finish() }
        try process.run()
    }

    deinit {
        for file in [output, errors] { try? FileManager.default.removeItem(at: file) }
    }

    /// The contents of standard error so far.
    var stderrSoFar: String { (try? String(contentsOf: errors, encoding: .utf8)) ?? "" }

    /// The contents of standard output so far.
    var stdoutSoFar: String { (try? String(contentsOf: output, encoding: .utf8)) ?? "" }

    func signal(_ number: Int32) { kill(process.processIdentifier, number) }

    /// Waits until the command has ended, and returns its result; kills a command that takes longer than five minutes,
    /// and fails the test.
    func finish() async throws -> Result {
        let (number, words) = (process.processIdentifier, process.arguments ?? [])
        let watchdog = Task {
            try await Task.sleep(for: .seconds(300))
            kill(number, SIGKILL)
            Issue.record("killed after five minutes: tow \(words)")
        }
        defer { watchdog.cancel() }
        for await _ in ended {}
        // `waitUntilExit` would block a thread that all tests share.
        while process.isRunning { try await Task.sleep(for: .milliseconds(1)) }
        // A process that a signal ended has the status that a shell reports for it.
        let bySignal = process.terminationReason == .uncaughtSignal
        return Result(
            status: process.terminationStatus + (bySignal ? 128 : 0), stdout: try Data(contentsOf: output),
            stderr: try String(contentsOf: errors, encoding: .utf8))
    }

    /// Runs the command until it ends.
    static func run(
        _ arguments: [String], input: String? = nil, directory: URL? = nil, environment: [String: String] = [:]
    ) async throws -> Result {
        guard let input else {
            return try await CommandRun(arguments, directory: directory, environment: environment).finish()
        }
        let file = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString + ".in")
        defer { try? FileManager.default.removeItem(at: file) }
        try Data(input.utf8).write(to: file)
        let handle = try FileHandle(forReadingFrom: file)
        return try await CommandRun(arguments, input: handle, directory: directory, environment: environment).finish()
    }
}

/// Waits until a condition holds; throws after two minutes.
func eventually(line: Int = #line, _ isSo: () async throws -> Bool) async throws {
    struct Never: Error { let line: Int }
    let end = ContinuousClock.now + .seconds(120)
    while try await !isSo() {
        guard ContinuousClock.now < end else { throw Never(line: line) }
        try await Task.sleep(for: .milliseconds(20))
    }
}

/// A directory for one test. It is removed when the object is released.
final class TestDirectory {
    let url: URL

    init() throws {
        url = FileManager.default.temporaryDirectory.appendingPathComponent("tow-test-" + UUID().uuidString)
        try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
    }

    deinit { try? FileManager.default.removeItem(at: url) }

    func file(_ name: String) -> URL { url.appendingPathComponent(name) }

    func path(_ name: String) -> String { file(name).path }

    /// Returns the checksum in hexadecimal digits, as another program computes it.
    func sha256(of name: String) async throws -> String {
        let program = URL(fileURLWithPath: "/usr/bin/sha256sum")
        return String(try await CommandRun([path(name)], program: program).finish().text.prefix(64))
    }

    var names: [String] { (try? FileManager.default.contentsOfDirectory(atPath: url.path))?.sorted() ?? [] }
}
