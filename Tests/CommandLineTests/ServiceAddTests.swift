import Foundation
import Testing

/// What `tow add` hands over.
struct ServiceAddTests {
    /// Signed links have thousands of bytes, and the service takes no request without an end.
    @Test(.timeLimit(.minutes(2))) func manyLongLinksAreAllAdded() async throws {
        let directory = try TestDirectory()
        let service = try ServiceProcess(directory)
        let signature = String(repeating: "s", count: 2000)
        let links = (0..<1100).map { "http://127.0.0.1:9/\($0)?signature=\(signature)\n" }.joined()
        try Data(links.utf8).write(to: directory.file("links"))
        #expect(try await service.tow(["list"]).status == 0)
        let added = try await service.tow(["add", "--paused", "--json", "-i", directory.path("links")])
        #expect(added.status == 0, "\(added.stderr)")
        #expect(added.text.split(separator: "\n").count == 1100)
        service.kill()
    }
}
