import Foundation
import TestServers
import Testing

/// What the API's document says of each request and answer, against the built `towd`.
struct DocumentTests {
    /// schemathesis asks for what the document allows and for what it forbids; no answer may differ from the document, and
    /// none may be a failure of the service. The same cases each time: what it finds, it finds on every machine.
    @Test(.timeLimit(.minutes(10))) func nothingIsFoundThatDiffersFromTheDocument() async throws {
        let modules = PythonProgram.fetched + "/schemathesis"
        try #require(
            FileManager.default.fileExists(atPath: modules + "/fetched"),
            "scripts/setup-tests could not fetch schemathesis"
        )
        let folder = try TemporaryFolder()
        // In a network of its own: some of the addresses that it makes up are somebody's.
        let run = try await PythonProgram(
            ["api_document.py", PythonProgram.towd, folder.path], in: folder,
            prefix: ["/usr/bin/unshare", getuid() == 0 ? "-n" : "-rn"], environment: ["PYTHONPATH": modules])
        #expect(run.status == 0, "\(run.output.suffix(20_000))")
    }
}
