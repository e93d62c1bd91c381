import Foundation
import TestServers

/// A test that is a Python program in this directory, with its own environment variables.
struct PythonProgram {
    static let here = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
    /// The directory of the files that `scripts/setup-tests` downloaded.
    static let fetched = here.appendingPathComponent("../../.build").standardizedFileURL.path
    static let towd = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath().deletingLastPathComponent()
        .appendingPathComponent("towd").path

    /// The output of the program.
    let output: String
    /// The exit status of the program; `nil` if a signal ended it.
    let status: Int32?

    /// Runs the program and waits for its end. Cancelling the task ends the program and its child processes.
    ///
    /// - Parameter prefix: a command that runs the program, such as `unshare -n`.
    init(
        _ arguments: [String], in folder: TemporaryFolder, prefix: [String] = [], environment: [String: String] = [:]
    ) async throws {
        let variables =
            ["PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": folder.path, "LANG": "C.UTF-8", "no_proxy": "*"]
            .merging(environment) { $1 }.map { "\($0)=\($1)" }
        let log = try folder.write("python", "")
        let child = try ChildProcess(
            "/usr/bin/env", ["-i", "-C", Self.here.path] + variables + prefix + [Programs.python, "-B"] + arguments,
            log: log)
        status = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                // Waits on a separate thread, because the wait blocks and the servers of the test need the other
                // threads.
                Thread.detachNewThread { continuation.resume(returning: child.wait()) }
            }
        } onCancel: {
            kill(-child.identifier, SIGTERM)
        }
        output = folder.read("python")
    }
}
