import FaultServer
import Foundation
import Testing

/// A program as a child process with its output in files: no pipe can fill up.
///
/// `@unchecked Sendable`: `Process` is used from the test that made it, and its termination handler touches nothing
/// but the stream's continuation.
final class ChildRun: @unchecked Sendable {
    struct Result: Sendable {
        /// As a shell gives it: 128 and the signal's number if one ended it.
        let status: Int32
        let stdout: [UInt8]
        let stderr: String
    }

    /// The built `tow`, which is where the test bundle is.
    static let tow = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath().deletingLastPathComponent()
        .appendingPathComponent("tow").path

    private let process = Process()
    private let scratch: Scratch
    private let ended: AsyncStream<Void>

    /// Starts `arguments[0]`, a whole path.
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

    var stderrSoFar: String { scratch.read("err") }

    var stdoutSoFar: String { scratch.read("out") }

    func signal(_ number: Int32) { kill(process.processIdentifier, number) }

    /// Returns when it has ended; a program that hangs is killed after two minutes.
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

    /// Runs a program to its end.
    @discardableResult
    static func run(
        _ arguments: [String], directory: String? = nil, environment: [String: String] = [:]
    ) async throws -> Result {
        try await ChildRun(arguments, directory: directory, environment: environment).finish()
    }

    /// Runs a tool that must work.
    static func tool(_ arguments: String...) async throws {
        let result = try await run(arguments)
        try #require(result.status == 0, "\(arguments): \(result.stderr)")
    }
}

extension Site {
    /// `tow get` with short waits, to be run in this site's directory. Only the stall timeout is longer than a busy
    /// machine lets the server fall silent: tests count requests, and a stall is answered by another one.
    func command(
        _ more: [String] = [], target: String = Site.path, named: Bool = true, prefix: [String] = []
    ) -> [String] {
        let waits = ["--retry-wait", "0.05", "--stall-timeout", "15", "--connect-timeout", "10", "--max-tries", "5"]
        return prefix + [ChildRun.tow, "get"] + waits + ["--progress", "plain"] + (named ? ["-o", Site.name] : [])
            + more + [server.url(target)]
    }

    /// Runs `tow get` to its end.
    func tow(
        _ more: [String] = [], target: String = Site.path, named: Bool = true, prefix: [String] = [],
        environment: [String: String] = [:]
    ) async throws -> ChildRun.Result {
        try await ChildRun.run(
            command(more, target: target, named: named, prefix: prefix), directory: scratch.path,
            environment: environment)
    }

    /// The law for a run of the command.
    @discardableResult
    func law(
        _ result: ChildRun.Result, status: Int32? = nil, versions: [Version]? = nil,
        sourceLocation: SourceLocation = #_sourceLocation
    ) throws -> Bool {
        if let status { #expect(result.status == status, "\(result.stderr)", sourceLocation: sourceLocation) }
        guard result.status == 0 else {
            #expect(!hasFile, "nothing appears under the name", sourceLocation: sourceLocation)
            return false
        }
        let all = versions ?? [server.version(Site.path)].compactMap { $0 }
        let isRight = try published(all) != nil
        #expect(isRight, "the file is no version of the server's", sourceLocation: sourceLocation)
        #expect(!hasPart && !hasJournal, "nothing is left behind", sourceLocation: sourceLocation)
        return true
    }
}
