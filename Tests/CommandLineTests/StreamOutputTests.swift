import FaultServer
import Foundation
import Testing

/// Tests `-o` with a device, a pipe or a descriptor instead of a file. A shell opens the descriptors.
struct StreamOutputTests {
    private static let length: Int64 = 2 << 20

    private func server() async throws -> FaultServer {
        try await FaultServer.start([
            "/a": Resource(length: Self.length, seed: 7), "/empty": Resource(length: 0, seed: 7),
        ])
    }

    /// Runs a script in which `$tow` is the program and `$url` the URL.
    private func shell(_ script: String, _ place: TestDirectory, url: String) async throws -> CommandRun.Result {
        let variables = ["tow": CommandRun.products.appendingPathComponent("tow").path, "url": url]
        return try await CommandRun(
            ["-c", script], directory: place.url, environment: variables, program: URL(fileURLWithPath: "/bin/sh")
        ).finish()
    }

    private func isWhole(_ place: TestDirectory, _ name: String) throws -> Bool {
        try FaultContent(seed: 7).firstMismatch(inFile: place.path(name), length: Self.length) == nil
    }

    /// For a device, no policy for existing files applies.
    @Test(arguments: ["fail", "overwrite", "rename", "skip"]) func aLinkToADevice(_ policy: String) async throws {
        let server = try await server()
        let place = try TestDirectory()
        #expect(symlink("/dev/null", place.path("out")) == 0)
        let result = try await CommandRun.run(
            ["get", "--if-exists", policy, "-o", "out", server.url("/a")], directory: place.url)
        #expect(result.status == 0, "\(result.stderr)")
        #expect(place.names == ["out"] && server.log.bodyBytesServed("/a") >= Self.length)
        #expect(try FileManager.default.destinationOfSymbolicLink(atPath: place.path("out")) == "/dev/null")
        await server.stop()
    }

    /// The reader may start before or after the command.
    @Test(arguments: [
        "cat pipe >got & $tow get -o pipe $url; s=$?; wait; exit $s",
        "$tow get -d . -o pipe $url & cat pipe >got; wait $!",
    ])
    func aPipeWithAName(_ script: String) async throws {
        let server = try await server()
        let place = try TestDirectory()
        #expect(mkfifo(place.path("pipe"), 0o600) == 0)
        let result = try await shell(script, place, url: server.url("/a"))
        #expect(result.status == 0, "\(result.stderr)")
        #expect(try isWhole(place, "got") && place.names == ["got", "pipe"])
        await server.stop()
    }

    /// A link to a pipe is a pipe, also before its reader starts.
    @Test func aLinkToAPipe() async throws {
        let server = try await server()
        let place = try TestDirectory()
        #expect(mkfifo(place.path("pipe"), 0o600) == 0 && symlink("pipe", place.path("out")) == 0)
        let script = "$tow get --if-exists overwrite -o out $url & cat pipe >got; wait $!"
        let result = try await shell(script, place, url: server.url("/a"))
        #expect(result.status == 0, "\(result.stderr)")
        #expect(try isWhole(place, "got") && place.names == ["got", "out", "pipe"])
        await server.stop()
    }

    /// The reader of an empty file sees its end.
    @Test func nothingForAPipe() async throws {
        let server = try await server()
        let place = try TestDirectory()
        #expect(mkfifo(place.path("pipe"), 0o600) == 0)
        let result = try await shell(
            "cat pipe >got & $tow get -o pipe $url; s=$?; wait; exit $s", place, url: server.url("/empty"))
        #expect(result.status == 0, "\(result.stderr)")
        #expect(place.names == ["got", "pipe"])
        await server.stop()
    }

    /// The bytes follow those that were written before; opening `/dev/fd/5` would overwrite them.
    @Test(arguments: ["/dev/fd/5", "/proc/self/fd/5"]) func aDescriptor(_ output: String) async throws {
        let server = try await server()
        let place = try TestDirectory()
        let result = try await shell(
            "exec 5>got; printf head >&5; $tow get -o \(output) $url", place, url: server.url("/a"))
        #expect(result.status == 0, "\(result.stderr)")
        let got = try Data(contentsOf: place.file("got"))
        #expect(got.count == 4 + Int(Self.length) && got.prefix(4) == Data("head".utf8))
        #expect(Array(got.dropFirst(4)) == FaultContent(seed: 7).bytes(in: 0..<Self.length))
        #expect(place.names == ["got"])
        await server.stop()
    }

    @Test(arguments: [("", "/dev/fd/7"), ("7<script", "/dev/fd/7"), ("<script", "/dev/stdin"), ("", "/proc/self/fd/9")])
    func aDescriptorThatCannotBeWritten(_ redirection: String, _ output: String) async throws {
        let server = try await server()
        let place = try TestDirectory()
        try Data().write(to: place.file("script"))
        let result = try await shell("$tow get -o \(output) $url \(redirection)", place, url: server.url("/a"))
        #expect(result.status == 2 && result.stderr.contains("is not open for writing"), "\(result.stderr)")
        #expect(server.log.requests.isEmpty && place.names == ["script"])
        await server.stop()
    }

    @Test func aFullDeviceIsAnError() async throws {
        let server = try await server()
        let place = try TestDirectory()
        let result = try await shell("$tow get -o /dev/full $url", place, url: server.url("/a"))
        #expect(result.status == 6 && result.stderr.contains("/dev/full"), "\(result.stderr)")
        #expect(place.names == [])
        await server.stop()
    }

    /// JSON and the file would mix.
    @Test(arguments: ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"])
    func standardOutputHasOneUse(_ output: String) async throws {
        let result = try await CommandRun.run(["get", "--json", "-o", output, "http://127.0.0.1:9/"])
        #expect(result.status == 2 && result.stderr.contains("standard output"), "\(result.stderr)")
    }

    /// A list cannot choose a device.
    @Test func aListWritesToNoDevice() async throws {
        let server = try await server()
        let place = try TestDirectory()
        #expect(symlink("/dev/null", place.path("out")) == 0)
        try Data("\(server.url("/a"))\n output=out\n".utf8).write(to: place.file("list"))
        let result = try await CommandRun.run(["get", "-i", "list"], directory: place.url)
        #expect(result.status == 6 && result.stderr.contains("is a pipe or a device"), "\(result.stderr)")
        await server.stop()
    }
}
