import FaultServer
import Foundation
import Testing

/// Names that a URL, a redirect or a server gives, and lists in UTF-16.
struct ServerNameTests {
    /// The lengths of a file without a journal and of one with a journal.
    private static let lengths: [Int64] = [1000, 2 << 20]

    /// A server with one file, and with redirects that tests set.
    private func server(
        _ path: String, _ length: Int64, _ behaviour: Behaviour = .correct
    ) async throws -> FaultServer {
        try await FaultServer.start([
            path: Resource(length: length, seed: 7, behaviour: behaviour), "/latest": Resource(length: 1),
            "/next": Resource(length: 1),
        ])
    }

    private func expect(_ place: TestDirectory, _ name: String, _ length: Int64) throws {
        #expect(place.names == [name])
        #expect(try FaultContent(seed: 7).firstMismatch(inFile: place.path(name), length: length) == nil)
    }

    /// The target's name is used, without its query. A second run finds the file.
    @Test(arguments: ["/tool-1.2.bin?sig=a/b", "tool-1.2.bin#x", "//127.0.0.1:PORT/tool-1.2.bin", "/next"], lengths)
    func aRedirectNamesTheFile(_ target: String, _ length: Int64) async throws {
        let server = try await server("/tool-1.2.bin", length)
        let location = target.replacingOccurrences(of: "PORT", with: "\(server.port)")
        server.set(.always(.redirect(to: location)), for: "/latest")
        server.set(.always(.redirect(to: "/tool-1.2.bin")), for: "/next")
        let place = try TestDirectory()
        for run in 0..<2 {
            let result = try await CommandRun.run(["get", server.url("/latest?x")], directory: place.url)
            #expect(result.status == 0, "\(result.stderr)")
            #expect(result.stderr.contains("already downloaded") == (run == 1), "\(result.stderr)")
            try expect(place, "tool-1.2.bin", length)
        }
        await server.stop()
    }

    /// The user asked for a file by its name.
    @Test(arguments: lengths) func theNameOfAFileStays(_ length: Int64) async throws {
        let server = try await FaultServer.start([
            "/3f9a": Resource(length: length, seed: 7),
            "/disk.iso": Resource(length: 1, behaviour: .always(.redirect(to: "/3f9a"))),
        ])
        let place = try TestDirectory()
        let result = try await CommandRun.run(["get", server.url("/disk.iso")], directory: place.url)
        #expect(result.status == 0, "\(result.stderr)")
        try expect(place, "disk.iso", length)
        await server.stop()
    }

    /// A target without a name, and one whose name is not safe.
    @Test(arguments: [("/", "latest"), ("/d/", "latest"), ("/.ssh", "ssh"), ("/a%2F..%2Fb", "b")], lengths)
    func aTargetWithoutAPlainName(_ target: (String, String), _ length: Int64) async throws {
        let server = try await server(target.0, length)
        server.set(.always(.redirect(to: target.0)), for: "/latest")
        let place = try TestDirectory()
        let result = try await CommandRun.run(["get", server.url("/latest")], directory: place.url)
        #expect(result.status == 0, "\(result.stderr)")
        try expect(place, target.1, length)
        await server.stop()
    }

    /// Content-Disposition of the target comes first, and `-o` before it.
    @Test(arguments: [true, false], lengths) func otherNamesComeFirst(_ isTyped: Bool, _ length: Int64) async throws {
        let named = Behaviour.always(.contentDisposition("attachment; filename=named.bin"))
        let server = try await server("/target.bin", length, named)
        server.set(.always(.redirect(to: "/target.bin")), for: "/latest")
        let place = try TestDirectory()
        let words = ["get", server.url("/latest")] + (isTyped ? ["-o", "typed.bin"] : [])
        let result = try await CommandRun.run(words, directory: place.url)
        #expect(result.status == 0, "\(result.stderr)")
        try expect(place, isTyped ? "typed.bin" : "named.bin", length)
        await server.stop()
    }

    /// A leading dot or hyphen is removed, with a notice; `:`, `*` and `?` are kept.
    @Test(
        arguments: [
            ("/.hidden", "hidden", true), ("/-rf", "rf", true), ("/%2Ehidden", "hidden", true),
            ("/a:b*c%3Fd", "a:b*c?d", false), ("/c:x", "c:x", false), ("/a%07b", "ab", false),
        ], lengths)
    func aNameFromTheURL(_ name: (String, String, Bool), _ length: Int64) async throws {
        let server = try await server(name.0, length)
        let place = try TestDirectory()
        let result = try await CommandRun.run(["get", server.url(name.0)], directory: place.url)
        #expect(result.status == 0, "\(result.stderr)")
        #expect(result.stderr.contains("saved as \(name.1) because") == name.2, "\(result.stderr)")
        try expect(place, name.1, length)
        await server.stop()
    }

    /// Raw control characters are sent percent-encoded, from an argument and from a redirect.
    @Test(arguments: ["/a\u{7}b.bin", "/a\u{1B}]0;b.bin", "/a\u{7F}b.bin"], [true, false])
    func aControlCharacter(_ path: String, _ isRedirect: Bool) async throws {
        let encoded = path.unicodeScalars.map { scalar in
            scalar.value < 0x20 || scalar.value == 0x7F
                ? "%" + (scalar.value < 0x10 ? "0" : "") + String(scalar.value, radix: 16, uppercase: true)
                : String(scalar)
        }.joined()
        let server = try await server(encoded, 1000)
        server.set(.always(.redirect(to: path)), for: "/latest")
        let place = try TestDirectory()
        let url = isRedirect ? server.url("/latest") : server.url(path)
        let result = try await CommandRun.run(["get", url], directory: place.url)
        #expect(result.status == 0, "\(result.stderr)")
        #expect(!result.stderr.unicodeScalars.contains { [0x07, 0x1B, 0x7F].contains($0.value) })
        #expect(place.names.count == 1)
        await server.stop()
    }

    /// A tab between two URLs, as in lists of aria2, is not a part of one URL.
    @Test func aTabInAList() async throws {
        let server = try await server("/a", 1000)
        let place = try TestDirectory()
        let line = "\(server.url("/a"))\t\(server.url("/b"))\n"
        let result = try await CommandRun.run(["get", "-i", "-"], input: line, directory: place.url)
        #expect(result.status == 2 && result.stderr.contains("mirror=URL"), "\(result.stderr)")
        #expect(server.log.requests.isEmpty && place.names == [])
        await server.stop()
    }

    /// A file of PowerShell or Notepad, also through a pipe.
    @Test(arguments: [String.Encoding.utf16LittleEndian, .utf16BigEndian], [true, false])
    func aListInSixteenBitUnits(_ encoding: String.Encoding, _ isPipe: Bool) async throws {
        let server = try await server("/a", 1000)
        let place = try TestDirectory()
        let text = "\u{FEFF}# 清单\r\n\(server.url("/a"))\r\n  output=zwölf 😀.bin\r\n"
        let list = try TestDirectory()
        try #require(text.data(using: encoding)).write(to: list.file("list"))
        let result = try await CommandRun(
            ["-c", isPipe ? "cat \"$list\" | $tow get -i -" : "$tow get -i \"$list\""], directory: place.url,
            environment: [
                "tow": CommandRun.products.appendingPathComponent("tow").path, "list": list.path("list"),
            ], program: URL(fileURLWithPath: "/bin/sh")
        ).finish()
        #expect(result.status == 0, "\(result.stderr)")
        try expect(place, "zwölf 😀.bin", 1000)
        await server.stop()
    }
}
