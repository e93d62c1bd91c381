import Foundation
import Testing

/// The reaction of `towd` to SIGHUP.
struct HangUpTests {
    /// Starts a service that writes its messages to a file. `prefix` is a program that runs it.
    private static func start(_ place: TestDirectory, prefix: [String] = []) async throws -> ServiceProcess {
        let log = place.file("log")
        try Data().write(to: log)
        let service = try ServiceProcess(place, prefix: prefix, errors: try FileHandle(forWritingTo: log))
        #expect(try await service.tow(["list"]).status == 0)
        return service
    }

    private static func log(_ place: TestDirectory) throws -> String {
        try String(contentsOf: place.file("log"), encoding: .utf8)
    }

    /// Writes the configuration file, sends SIGHUP, and waits until the log contains a message.
    private static func reload(_ service: ServiceProcess, _ text: String, until message: String) async throws {
        let place = service.directory
        try FileManager.default.createDirectory(
            atPath: place.path(".config/towline"), withIntermediateDirectories: true)
        try Data(text.utf8).write(to: place.file(".config/towline/towd.yaml"))
        kill(try #require(service.number), SIGHUP)
        let end = ContinuousClock.now + .seconds(60)
        while try !log(place).contains(message), ContinuousClock.now < end {
            try await Task.sleep(for: .milliseconds(50))
        }
        #expect(try log(place).contains(message))
    }

    /// Adds a download from a private address, and waits until it waits or fails. Returns its short reason.
    private static func reason(_ service: ServiceProcess, _ name: String) async throws -> String {
        let added = try await service.tow(["add", "--json", "http://127.0.0.1:1/\(name)"])
        let id = try #require(added.objects.first?["id"] as? String, "\(added.stderr)")
        var text = ""
        try await eventually {
            let shown = try await service.tow(["show", "--json", id])
            text = shown.text
            return ["waiting", "failed"].contains(try shown.objects.first?["state"] as? String ?? "")
        }
        return text
    }

    /// After an error, no setting changes: not even those that the file sets correctly.
    @Test(.timeLimit(.minutes(2))) func theConfigurationIsReadAgain() async throws {
        let place = try TestDirectory()
        let service = try await Self.start(place)
        defer { service.kill() }
        #expect(try await !Self.reason(service, "before").contains("private-addresses"))
        try await Self.reload(service, "private-addresses: nobody\n", until: "was read again")
        #expect(try await Self.reason(service, "read").contains("private-addresses"))
        let errors = [
            "host: a b\n": "invalid value 'a b'", "nonsense: 1\n": "unknown option 'nonsense'",
            "host: [\n": "is not valid YAML",
        ]
        for (line, message) in errors {
            try await Self.reload(service, "private-addresses: local\n" + line, until: message)
            #expect(try await Self.reason(service, message.filter(\.isLetter)).contains("private-addresses"), "\(line)")
        }
        #expect(try Self.log(place).components(separatedBy: "the configuration was not changed: ").count == 4)
        #expect(try !Self.log(place).contains("restart"))
    }

    /// Directories change only with a restart, and the log says so.
    @Test(.timeLimit(.minutes(2))) func aChangeThatNeedsARestartIsNamed() async throws {
        let place = try TestDirectory()
        let service = try await Self.start(place)
        defer { service.kill() }
        service.kill()
        try service.start(namesDownloads: false)
        #expect(try await service.tow(["list"]).status == 0)
        try await Self.reload(
            service, "downloads: \(place.path("other"))\n",
            until: "changes of directories, socket and addresses apply after a restart")
        let added = try await service.tow(["add", "--json", "--paused", "http://127.0.0.1:1/a"])
        #expect(try added.objects.first?["directory"] as? String == place.path("downloads"), "\(added.text)")
    }

    /// nohup(1) ignores the signal.
    @Test(.timeLimit(.minutes(2))) func anIgnoredSignalStaysIgnored() async throws {
        let place = try TestDirectory()
        let service = try await Self.start(place, prefix: ["/usr/bin/env", "--ignore-signal=HUP"])
        let number = try #require(service.number)
        let status = try String(contentsOfFile: "/proc/\(number)/status", encoding: .utf8)
        let ignored = try #require(status.firstMatch(of: /SigIgn:\t([0-9a-f]+)/))
        #expect((UInt64(ignored.1, radix: 16) ?? 0) & 1 == 1)
        kill(number, SIGHUP)
        #expect(try await service.tow(["service", "status"]).text.contains("yes: towd"))
        #expect(try !Self.log(place).contains("SIGHUP"))
        service.kill()
    }
}
