import Foundation
import TestServers

/// A test that is a Python program beside this file, with an environment of its own.
struct PythonProgram {
    static let here = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
    /// What `scripts/setup-tests` has fetched.
    static let fetched = here.appendingPathComponent("../../.build").standardizedFileURL.path
    static let towd = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath().deletingLastPathComponent()
        .appendingPathComponent("towd").path

    /// What it said.
    let output: String
    /// Its exit status; `nil`: a signal ended it.
    let status: Int32?

    /// Runs it to its end. It and whatever it started end with the task.
    ///
    /// - Parameter prefix: a program that runs it, such as `unshare -n`.
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
                // Waiting for a child holds a thread: none of those that the servers of the test run on.
                Thread.detachNewThread { continuation.resume(returning: child.wait()) }
            }
        } onCancel: {
            kill(-child.identifier, SIGTERM)
        }
        output = folder.read("python")
    }
}
