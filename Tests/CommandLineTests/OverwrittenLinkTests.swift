import FaultServer
import Foundation
import Testing

/// Tests `--if-exists overwrite` with a symbolic link as the final name: the user's link is kept, its target is
/// replaced.
struct OverwrittenLinkTests {
    private static let length: Int64 = 3 << 20

    private func server() async throws -> FaultServer {
        try await FaultServer.start(["/link": Resource(length: Self.length, seed: 7)])
    }

    /// A directory `d` with links, next to a file `target`.
    private func place(link: String) throws -> TestDirectory {
        let place = try TestDirectory()
        try FileManager.default.createDirectory(at: place.file("d"), withIntermediateDirectories: false)
        try Data("old".utf8).write(to: place.file("target"))
        #expect(chmod(place.path("target"), 0o640) == 0)
        #expect(symlink(link, place.path("d/link")) == 0)
        #expect(symlink("link", place.path("d/chain")) == 0)
        return place
    }

    private func isOld(_ place: TestDirectory) throws -> Bool {
        try Data(contentsOf: place.file("target")) == Data("old".utf8)
    }

    /// `curl -o` and `wget -O` do the same; the part file is beside the target.
    @Test(arguments: ["link", "chain"]) func theTargetOfATypedNameIsReplaced(_ name: String) async throws {
        let server = try await server()
        let place = try place(link: "../target")
        let result = try await CommandRun.run(
            ["get", "--if-exists", "overwrite", "-d", "d", "-o", name, server.url("/link")], directory: place.url)
        #expect(result.status == 0, "\(result.stderr)")
        #expect(try FaultContent(seed: 7).firstMismatch(inFile: place.path("target"), length: Self.length) == nil)
        let attributes = try FileManager.default.attributesOfItem(atPath: place.path("target"))
        #expect((attributes[.posixPermissions] as? NSNumber)?.intValue == 0o640)
        #expect(try FileManager.default.destinationOfSymbolicLink(atPath: place.path("d/link")) == "../target")
        #expect(place.names == ["d", "target"])
        await server.stop()
    }

    /// A server or a list cannot write outside the directory, and a link is not replaced.
    @Test(arguments: [[], ["-i", "list"]]) func aNameThatWasNotTypedIsNotFollowed(_ list: [String]) async throws {
        let server = try await server()
        let place = try place(link: "../target")
        try Data("\(server.url("/link"))\n output=chain\n".utf8).write(to: place.file("list"))
        let words = ["get", "--if-exists", "overwrite", "-d", "d"] + (list.isEmpty ? [server.url("/link")] : list)
        let result = try await CommandRun.run(words, directory: place.url)
        #expect(result.status == 6 && result.stderr.contains("is a symbolic link"), "\(result.stderr)")
        #expect(try isOld(place))
        #expect(try FileManager.default.destinationOfSymbolicLink(atPath: place.path("d/link")) == "../target")
        await server.stop()
    }

    /// Links without a target are refused before the first request.
    @Test(arguments: ["nowhere", "link"]) func aLinkThatLeadsNowhereIsAnError(_ target: String) async throws {
        let server = try await server()
        let place = try place(link: target)
        let result = try await CommandRun.run(
            ["get", "--if-exists", "overwrite", "-o", "d/link", server.url("/link")], directory: place.url)
        #expect(result.status == 6 && result.stderr.contains("is a symbolic link"), "\(result.stderr)")
        #expect(server.log.requests.isEmpty)
        await server.stop()
    }
}
