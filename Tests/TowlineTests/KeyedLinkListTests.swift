import FaultServer
import Foundation
import Testing
import Towline

/// Two URLs in the list that differ only in a secret parameter are two downloads with two files.
@Suite struct KeyedLinkListTests {
    private static let version = Version(seed: 7, length: 300_000)
    private static let other = version.replaced(seed: 9)

    @Test(arguments: ["key", "token", "auth", "session"])
    func twoKeysAreTwoDownloads(_ name: String) async throws {
        let behaviour = Behaviour { context in
            context.correct(of: context.request.query?.hasSuffix("=b") == true ? Self.other : Self.version)
        }
        let site = try await Site(["/file": Resource(Self.version, behaviour: behaviour)])
        let downloader = try await site.downloader()
        let first = try await downloader.add(try site.request("/file?\(name)=a"))
        _ = try await first.file
        let second = try await downloader.add(try site.request("/file?\(name)=b"))
        _ = try await second.file
        #expect(first.id != second.id)
        #expect(site.holds("file", Self.version) && site.holds("file (1)", Self.other), "\(site.names)")
        // The same URL again finds its file.
        _ = try await downloader.add(try site.request("/file?\(name)=b")).file
        #expect(site.names == ["file", "file (1)"])
        try await second.remove(deletingFiles: true)
        #expect(site.names == ["file"] && site.holds("file", Self.version))
        await downloader.close()
        await site.server.stop()
    }

    /// The server chooses the name of an existing file. The message suits a client of the service.
    @Test(arguments: [ExistingPolicy.overwrite, .update])
    func theServersNameReplacesNothing(_ policy: ExistingPolicy) async throws {
        var resource = Resource(Self.version)
        resource.fields = [("Content-Disposition", "attachment; filename=mine")]
        let site = try await Site(["/file": resource])
        let downloader = try await site.downloader()
        let first = try await downloader.add(try site.request("/file"))
        let file = try await first.file
        #expect(file.lastPathComponent == "mine")
        // A download of the same URL is replaced, also when the list has learned its name.
        try await first.refetch()
        _ = try await first.file
        #expect(site.names == ["mine"] && site.holds("mine", Self.version))
        try await first.remove(deletingFiles: false)
        try Data("old".utf8).write(to: file)
        let second = try await downloader.add(try site.request("/file") { $0.existing = policy })
        let error = await #expect(throws: TowlineError.self) { try await second.file }
        #expect(error?.code == .destinationExists && error?.message.contains(" -") == false)
        #expect(try Data(contentsOf: file) == Data("old".utf8) && site.names == ["mine"])
        await downloader.close()
        await site.server.stop()
    }
}
