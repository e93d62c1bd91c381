import FaultServer
import Foundation
import Testing

/// Names, URLs and lists that are not UTF-8. A shell makes the words: Foundation passes only text.
struct ByteNameTests {
    private static let length: Int64 = 2 << 20

    private func server() async throws -> FaultServer {
        try await FaultServer.start([
            "/a": Resource(length: Self.length, seed: 7), "/small": Resource(length: 1000, seed: 7),
            "/caf%E9": Resource(length: 1000, seed: 7),
        ])
    }

    /// Runs `tow` with words that a shell expands.
    private func run(
        _ words: String, _ place: TestDirectory, locale: String = "C.UTF-8"
    ) async throws -> CommandRun.Result {
        let program = CommandRun.products.appendingPathComponent("tow").path
        return try await shell("exec '\(program)' \(words)", place, locale: locale)
    }

    private func shell(
        _ script: String, _ place: TestDirectory, locale: String = "C.UTF-8"
    ) async throws -> CommandRun.Result {
        try await CommandRun(
            ["-c", script], directory: place.url, environment: ["LC_ALL": locale],
            program: URL(fileURLWithPath: "/bin/sh")
        ).finish()
    }

    /// Returns the names in a directory, as bytes.
    private func names(_ path: String) -> [[UInt8]] {
        guard let folder = opendir(path) else { return [] }
        defer { closedir(folder) }
        var names: [[UInt8]] = []
        while let entry = readdir(folder) {
            let name = withUnsafeBytes(of: &entry.pointee.d_name) { Array($0.prefix { $0 != 0 }) }
            if name.first != 0x2E { names.append(name) }
        }
        return names.sorted { $0.lexicographicallyPrecedes($1) }
    }

    @Test(arguments: ["C.UTF-8", "C"], ["/a", "/small"])
    func theFileHasTheNameThatWasTyped(_ locale: String, _ path: String) async throws {
        let server = try await server()
        let place = try TestDirectory()
        for more in ["", "-H 'X-A: b' "] {
            let words = #"get \#(more)-o "$(printf '\344\377.bin')" \#(server.url(path))"#
            let result = try await run(words, place, locale: locale)
            #expect(result.status == 0 && result.stderr.contains(#"\xe4\xff.bin  "#), "\(result.stderr)")
            #expect(names(place.url.path) == [[0xE4, 0xFF, 0x2E, 0x62, 0x69, 0x6E]])
        }
        await server.stop()
    }

    @Test func theDirectoryIsFound() async throws {
        let server = try await server()
        let place = try TestDirectory()
        let words = #"get -d "$(printf 'd\344r')" -o x \#(server.url("/a"))"#
        let missing = try await run(words, place)
        #expect(
            missing.status == 6 && missing.stderr.contains(#"the directory d\xe4r does not exist"#), "\(missing.stderr)"
        )
        let made = try await shell(#"mkdir "$(printf 'd\344r')""#, place)
        #expect(made.status == 0)
        let result = try await run(words, place)
        #expect(result.status == 0, "\(result.stderr)")
        let status = try await run(#"status "$(printf 'd\344r/x')""#, place)
        #expect(status.status == 0 && status.text.contains("finished"), "\(status.stderr)")
        await server.stop()
    }

    @Test func listsAndURLsKeepTheirBytes() async throws {
        let server = try await server()
        let place = try TestDirectory()
        let line = Data(server.url("/caf").utf8) + Data([0xE9]) + Data("\n output=".utf8) + Data([0xFC, 0x0A])
        try line.write(to: place.file("list"))
        let result = try await run("get -i list", place)
        #expect(result.status == 0, "\(result.stderr)")
        #expect(names(place.url.path) == [Array("list".utf8), [0xFC]])
        let again = try await run(#"get -o u "$(printf '\#(server.url("/caf"))\351')""#, place)
        #expect(again.status == 0, "\(again.stderr)")
        await server.stop()
    }

    /// A byte is the character U+10FF00 + byte in JSON.
    @Test func jsonKeepsTheName() async throws {
        let server = try await server()
        let place = try TestDirectory()
        let result = try await run(#"get --json -o "$(printf '\351')" \#(server.url("/small"))"#, place)
        #expect(
            try result.objects.contains { ($0["path"] as? String)?.hasSuffix("\u{10FFE9}") == true }, "\(result.text)")
        await server.stop()
    }
}
