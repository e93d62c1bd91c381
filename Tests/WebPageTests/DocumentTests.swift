import Foundation
import TestServers
import Testing

/// Tests of the API document against the requests and responses of the built `towd`.
struct DocumentTests {
    /// schemathesis sends requests that the document allows and requests that it forbids. Every response must match the
    /// document and must not be a failure of the service. The cases are the same on every machine.
    @Test(.timeLimit(.minutes(10))) func nothingIsFoundThatDiffersFromTheDocument() async throws {
        let modules = PythonProgram.fetched + "/schemathesis"
        try #require(
            FileManager.default.fileExists(atPath: modules + "/fetched"),
            "scripts/setup-tests could not fetch schemathesis"
        )
        let folder = try TemporaryFolder()
        // Runs in a separate network namespace, because some generated addresses exist.
        let run = try await PythonProgram(
            ["api_document.py", PythonProgram.towd, folder.path], in: folder,
            prefix: ["/usr/bin/unshare", getuid() == 0 ? "-n" : "-rn"], environment: ["PYTHONPATH": modules])
        #expect(run.status == 0, "\(run.output.suffix(20_000))")
    }
}
