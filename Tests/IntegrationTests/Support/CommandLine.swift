import FaultServer
import Foundation
import Testing

/// A program as a child process. Its output goes to files, so that no pipe can fill up.
///
/// `@unchecked Sendable`: only the test that made the `Process` uses it, and its termination handler touches only the
/// stream's continuation.
final class ChildRun: @unchecked Sendable {
    struct Result: Sendable {
        /// The exit status as a shell reports it: 128 plus the signal's number if a signal ended the program.
        let status: Int32
        let stdout: [UInt8]
        let stderr: String
    }

    /// The path of the built `tow`, which is in the directory of the test bundle.
    static let tow = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath().deletingLastPathComponent()
        .appendingPathComponent("tow").path

    private let process = Process()
    private let scratch: Scratch
    private let ended: AsyncStream<Void>

    /// Starts `arguments[0]`, an absolute path.
    init(_ arguments: [String], directory: String? = nil, environment: [String: String] = [:]) throws {
        scratch = try Scratch()
        for name in ["out", "err"] { try scratch.write(name, "") }
        process.executableURL = URL(fileURLWithPath: arguments[0])
        process.arguments = Array(arguments.dropFirst())
        process.standardInput = FileHandle.nullDevice
        process.standardOutput = FileHandle(forWritingAtPath: scratch.file("out"))
        process.standardError = FileHandle(forWritingAtPath: scratch.file("err"))
        if let directory { process.currentDirectoryURL = URL(fileURLWithPath: directory) }
        var variables = [
            "PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/nonexistent", "LANG": "C.UTF-8", "no_proxy": "*",
        ]
        variables.merge(environment) { $1 }
        process.environment = variables
        let (stream, continuation) = AsyncStream.makeStream(of: Void.self)
        ended = stream
        process.terminationHandler = { _ in continuation.finish() }
        try process.run()
    }

    var identifier: pid_t { process.processIdentifier }

    var isRunning: Bool { process.isRunning }

    var stderrSoFar: String { scratch.read("err") }

    var stdoutSoFar: String { scratch.read("out") }

    func signal(_ number: Int32) { kill(process.processIdentifier, number) }

    /// Waits until the program has ended, and returns its result; kills a program that takes longer than two minutes.
    func finish() async throws -> Result {
        let watchdog = Task {
            try await Task.sleep(for: .seconds(120))
            self.signal(SIGKILL)
        }
        for await _ in ended {}
        watchdog.cancel()
        process.waitUntilExit()
        let bySignal = process.terminationReason == .uncaughtSignal
        let output = FileManager.default.contents(atPath: scratch.file("out")) ?? Data()
        return Result(
            status: process.terminationStatus + (bySignal ? 128 : 0), stdout: Array(output),
            stderr: String(decoding: FileManager.default.contents(atPath: scratch.file("err")) ?? Data(), as: UTF8.self)
        )
    }

    /// Runs a program until it ends.
    @discardableResult
    static func run(
        _ arguments: [String], directory: String? = nil, environment: [String: String] = [:]
    ) async throws -> Result {
        try await ChildRun(arguments, directory: directory, environment: environment).finish()
    }

    /// Runs a tool, and fails the test if the tool fails.
    static func tool(_ arguments: String...) async throws {
        let result = try await run(arguments)
        try #require(result.status == 0, "\(arguments): \(result.stderr)")
    }
}

extension Site {
    /// Returns the words for `tow get` with short waits, to be run in this site's directory. The stall timeout is
    /// longer than a busy machine keeps the server silent: tests count requests, and each stall causes another one.
    func command(
        _ more: [String] = [], target: String = Site.path, named: Bool = true, prefix: [String] = []
    ) -> [String] {
        let waits = ["--retry-wait", "0.05", "--stall-timeout", "15", "--connect-timeout", "10", "--max-tries", "5"]
        return prefix + [ChildRun.tow, "get"] + waits + ["--progress", "plain"] + (named ? ["-o", Site.name] : [])
            + more + [server.url(target)]
    }

    /// Runs `tow get` until it ends.
    func tow(
        _ more: [String] = [], target: String = Site.path, named: Bool = true, prefix: [String] = [],
        environment: [String: String] = [:]
    ) async throws -> ChildRun.Result {
        try await ChildRun.run(
            command(more, target: target, named: named, prefix: prefix), directory: scratch.path,
            environment: environment)
    }

    /// Checks the law for a run of the command.
    @discardableResult
    func law(
        _ result: ChildRun.Result, status: Int32? = nil, versions: [Version]? = nil,
        sourceLocation: SourceLocation = #_sourceLocation
    ) throws -> Bool {
        if let status { #expect(result.status == status, "\(result.stderr)", sourceLocation: sourceLocation) }
        guard result.status == 0 else {
            #expect(!hasFile, "the failed command published no file", sourceLocation: sourceLocation)
            return false
        }
        let all = versions ?? [server.version(Site.path)].compactMap { $0 }
        let isRight = try published(all) != nil
        #expect(isRight, "the file is no version of the server's", sourceLocation: sourceLocation)
        #expect(!hasPart && !hasJournal, "no part file or journal is left", sourceLocation: sourceLocation)
        return true
    }
}
