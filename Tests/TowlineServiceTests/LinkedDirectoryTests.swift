import FaultServer
import Foundation
import Testing
import TowlineService
import TowlineWire

/// A directory of a download becomes a symbolic link after the download was added. A link that leads out of the
/// downloads directory is not followed.
@Suite(.timeLimit(.minutes(2))) struct LinkedDirectoryTests {
    private static let version = Version(seed: 22, length: 3_000_000)

    /// Moves the directory `sub` to `target`, and creates a link with its old name.
    private func relink(_ site: ServiceSite, to target: URL) throws {
        let sub = site.downloads.appendingPathComponent("sub")
        try FileManager.default.moveItem(at: sub, to: target)
        try FileManager.default.createSymbolicLink(at: sub, withDestinationURL: target)
    }

    private func names(_ directory: URL) -> [String] {
        ((try? FileManager.default.contentsOfDirectory(atPath: directory.path)) ?? []).sorted()
    }

    private func state(_ site: ServiceSite, _ id: String) async throws -> [String: Any] {
        try await site.ask("GET", "/downloads/\(id)").object
    }

    /// The download was added paused, or has run.
    @Test(arguments: [false, true]) func noByteIsWrittenOutside(_ hasRun: Bool) async throws {
        let site = try await ServiceSite(["/a": Resource(Self.version, rate: 2_000_000)])
        let id = try await site.add("/a", ["directory": "sub", "connections": 1, "startsPaused": !hasRun])
        if hasRun {
            try await site.wait(id) { $0.heldBytes > 1_000_000 }
            _ = try await site.ask("POST", "/downloads/\(id)/actions/pause")
        }
        let outside = site.root.appendingPathComponent("outside")
        try relink(site, to: outside)
        let before = names(outside)
        let bytes = before.map { try? Data(contentsOf: outside.appendingPathComponent($0)) }
        _ = try await site.ask("POST", "/downloads/\(id)/actions/resume")
        try await site.wait(id, for: .failed)
        let error = try await state(site, id)["error"] as? [String: Any]
        #expect(error?["code"] as? String == "unusableDestination")
        #expect((error?["message"] as? String)?.contains("symbolic link") == true, "\(error ?? [:])")
        #expect(names(outside) == before)
        // Nor is the part file deleted with the download.
        let answer = try await site.ask("DELETE", "/downloads/\(id)?files=true")
        #expect(answer.status == 204)
        #expect(names(outside) == before)
        #expect(before.map { try? Data(contentsOf: outside.appendingPathComponent($0)) } == bytes)
        try await site.stop()
    }

    @Test func noFileIsDeletedOutside() async throws {
        let site = try await ServiceSite(["/a": Resource(Version(seed: 1, length: 100))])
        let id = try await site.add("/a", ["directory": "sub"])
        try await site.wait(id, for: .finished)
        let outside = site.root.appendingPathComponent("outside")
        try relink(site, to: outside)
        #expect(try await site.ask("DELETE", "/downloads/\(id)?files=true").status == 204)
        #expect(names(outside) == ["a"])
        try await site.stop()
    }

    /// A link that stays inside, and links above the downloads directory, are the user's.
    @Test func linksInsideAndAboveAreFollowed() async throws {
        let root = FileManager.default.temporaryDirectory.appendingPathComponent("towd-" + UUID().uuidString)
        let (real, link) = (root.appendingPathComponent("real"), root.appendingPathComponent("link"))
        try FileManager.default.createDirectory(at: real, withIntermediateDirectories: true)
        try FileManager.default.createSymbolicLink(at: link, withDestinationURL: real)
        let site = try await ServiceSite(["/a": Resource(Self.version, rate: 2_000_000)], root: root) {
            $0.downloadsDirectories = [link.appendingPathComponent("downloads")]
        }
        let id = try await site.add("/a", ["directory": "sub", "connections": 1])
        try await site.wait(id) { $0.heldBytes > 1_000_000 }
        _ = try await site.ask("POST", "/downloads/\(id)/actions/pause")
        let downloads = real.appendingPathComponent("downloads")
        let (sub, moved) = (downloads.appendingPathComponent("sub"), downloads.appendingPathComponent("moved"))
        try FileManager.default.moveItem(at: sub, to: moved)
        try FileManager.default.createSymbolicLink(at: sub, withDestinationURL: moved)
        _ = try await site.ask("POST", "/downloads/\(id)/actions/resume")
        try await site.wait(id, for: .finished)
        #expect(names(moved) == ["a"])
        #expect(try await site.ask("DELETE", "/downloads/\(id)?files=true").status == 204)
        #expect(names(moved).isEmpty)
        try await site.stop()
    }
}
