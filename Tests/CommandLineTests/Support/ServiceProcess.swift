import Foundation

/// The built `towd`, with a state directory and a downloads directory of its own.
final class ServiceProcess {
    let directory: TestDirectory
    private let prefix: [String]
    private let errors: FileHandle
    private var process: Process?

    /// - Parameters:
    /// - prefix: A program, with its arguments, that runs `towd`.
    /// - errors: The file for standard error.
    init(_ directory: TestDirectory, prefix: [String] = [], errors: FileHandle = .nullDevice) throws {
        self.directory = directory
        self.prefix = prefix
        self.errors = errors
        try start()
    }

    deinit { process?.terminate() }

    /// The options with which `tow` finds the service.
    var options: [String] { ["--state", directory.path("state")] }

    /// Starts the service. It listens after a moment; `tow` repeats its request until then.
    ///
    /// - Parameter namesDownloads: `true` to pass `--downloads`.
    func start(namesDownloads: Bool = true) throws {
        let process = Process()
        let program = CommandRun.products.appendingPathComponent("towd").path
        let downloads = namesDownloads ? ["--downloads", directory.path("downloads")] : []
        let words = prefix + [program] + options + downloads + ["--listen", "none"]
        process.executableURL = URL(fileURLWithPath: words[0])
        process.arguments = Array(words.dropFirst())
        process.environment = ["PATH": "/usr/bin:/bin", "HOME": directory.url.path]
        process.standardInput = FileHandle.nullDevice
        process.standardError = errors
        try process.run()
        self.process = process
    }

    /// The process identifier; `nil` if the service does not run.
    var number: Int32? { process?.processIdentifier }

    /// Kills the service at once, without an orderly end.
    func kill() {
        guard let process else { return }
        Glibc.kill(process.processIdentifier, SIGKILL)
        process.waitUntilExit()
        self.process = nil
    }

    /// Runs `tow` with this service, again and again until the service listens.
    func tow(_ arguments: [String]) async throws -> CommandRun.Result {
        // `tow add` would start another service.
        if arguments.first == "add", process != nil { _ = try await tow(["list", "--number", "1"]) }
        let end = ContinuousClock.now + .seconds(60)
        while true {
            let result = try await CommandRun.run(arguments + options)
            guard result.stderr.contains("is not running"), ContinuousClock.now < end else { return result }
            try await Task.sleep(for: .milliseconds(50))
        }
    }
}
