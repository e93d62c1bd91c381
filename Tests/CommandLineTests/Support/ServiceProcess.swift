import Foundation

/// The built `towd`, with a state directory and a downloads directory of its own.
final class ServiceProcess {
    let directory: TestDirectory
    private var process: Process?

    init(_ directory: TestDirectory) throws {
        self.directory = directory
        try start()
    }

    deinit { process?.terminate() }

    /// What `tow` is told to find it.
    var options: [String] { ["--state", directory.path("state")] }

    /// Starts it. It listens when somebody asks for long enough.
    func start() throws {
        let process = Process()
        process.executableURL = CommandRun.products.appendingPathComponent("towd")
        process.arguments = options + ["--downloads", directory.path("downloads"), "--listen", "none"]
        process.environment = ["PATH": "/usr/bin:/bin", "HOME": directory.url.path]
        process.standardInput = FileHandle.nullDevice
        process.standardError = FileHandle.nullDevice
        try process.run()
        self.process = process
    }

    /// Ends it at once, without a word.
    func kill() {
        guard let process else { return }
        Glibc.kill(process.processIdentifier, SIGKILL)
        process.waitUntilExit()
        self.process = nil
    }

    /// Runs `tow` about this service; where it does not listen yet, again.
    func tow(_ arguments: [String]) async throws -> CommandRun.Result {
        let end = ContinuousClock.now + .seconds(60)
        while true {
            let result = try await CommandRun.run(arguments + options)
            guard result.stderr.contains("does not run"), ContinuousClock.now < end else { return result }
            try await Task.sleep(for: .milliseconds(50))
        }
    }
}
