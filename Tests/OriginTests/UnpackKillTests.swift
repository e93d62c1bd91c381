import Foundation
import TestServers
import Testing

/// Tests of SIGKILLs during unpacking: the next launch completes the directory and leaves no other files.
@Suite(.serialized) struct UnpackKillTests {
    private static let isTorture = ProcessInfo.processInfo.environment["TOWLINE_TORTURE"] != nil
    private static let files = isTorture ? 3_000 : 1_500

    @Test func o5_aKillWhileTheArchiveIsUnpackedCostsNothing() async throws {
        let nginx = try await Nginx()
        try await pack(nginx.folder.path + "/many.tar.gz")
        var halfway = 0
        for round in 0..<(Self.isTorture ? 60 : 3) {
            let place = try Place()
            defer { place.remove() }
            var run = try ExampleRun(.archive, [place.path])
            try run.send("unpack \(nginx.url("many.tar.gz")) out")
            let staging = place.path + "/.out.unpacking-1"
            while !FileManager.default.fileExists(atPath: staging), !isThere(place) { await Task.yield() }
            // Each round kills the program at a later time.
            try await Task.sleep(for: .milliseconds(round * 15))
            await run.kill()
            if !isThere(place) { halfway += 1 }
            #expect(try count(place) == (isThere(place) ? Self.files : nil), "the directory is complete or missing")
            run = try ExampleRun(.archive, [place.path])
            #expect(try await run.path(report: "ready: ") == place.path + "/out")
            #expect(try count(place) == Self.files)
            #expect(try place.names() == ["out"])
            #expect(try await run.quit() == 0)
        }
        #expect(halfway > 0, "some kills happened during unpacking")
        #expect(Set(nginx.log.map(\.path)).count == 1)
    }

    private func isThere(_ place: Place) -> Bool {
        FileManager.default.fileExists(atPath: place.path + "/out")
    }

    /// Returns the number of unpacked files with the correct content; `nil` if the directory does not exist.
    private func count(_ place: Place) throws -> Int? {
        guard isThere(place) else { return nil }
        return try (0..<Self.files).count { number in
            try String(contentsOfFile: place.path + "/out/many/\(number)", encoding: .utf8) == "file \(number)\n"
        }
    }

    private func pack(_ archive: String) async throws {
        let place = try Place()
        defer { place.remove() }
        let folder = place.path + "/many"
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        for number in 0..<Self.files {
            try "file \(number)\n".write(toFile: folder + "/\(number)", atomically: false, encoding: .utf8)
        }
        let tar = Process()
        tar.executableURL = URL(fileURLWithPath: "/bin/tar")
        tar.arguments = ["-C", place.path, "-czf", archive, "many"]
        try tar.run()
        tar.waitUntilExit()
        try #require(tar.terminationStatus == 0)
    }
}
