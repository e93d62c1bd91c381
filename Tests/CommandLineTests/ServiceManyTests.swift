import FaultServer
import Foundation
import TestServers
import Testing

/// Commands for all downloads, and commands that start `towd`, with built programs.
struct ServiceManyTests {
    private static func states(_ service: ServiceProcess) async throws -> [String] {
        try await service.tow(["list", "--json"]).objects.compactMap { $0["state"] as? String }.sorted()
    }

    private static func wait(_ service: ServiceProcess, until isSo: ([String]) -> Bool) async throws -> [String] {
        let end = ContinuousClock.now + .seconds(60)
        while true {
            let states = try await states(service)
            if isSo(states) || ContinuousClock.now > end { return states }
            try await Task.sleep(for: .milliseconds(50))
        }
    }

    @Test(.timeLimit(.minutes(2))) func allDownloadsAreReachedByOneCommand() async throws {
        let server = try await FaultServer.start([
            "/slow.bin": Resource(length: 64 << 20, seed: 7, rate: 1 << 20), "/a.bin": Resource(length: 1000),
            "/b.bin": Resource(length: 1000),
        ])
        let place = try TestDirectory()
        let service = try ServiceProcess(place)
        _ = try await service.tow(["list"])
        _ = try await service.tow(["add", server.url("/a.bin"), server.url("/b.bin")])
        #expect(try await Self.wait(service) { $0 == ["finished", "finished"] }.count == 2)
        _ = try await service.tow(["add", server.url("/slow.bin")])
        #expect(try await Self.wait(service) { $0.contains("downloading") }.contains("downloading"))

        let paused = try await service.tow(["pause", "--all"])
        #expect(paused.text == "All downloads are paused.\n" && paused.status == 0, "\(paused.stderr)")
        #expect(try await Self.states(service) == ["finished", "finished", "paused"])
        let resumed = try await service.tow(["resume", "--all"])
        #expect(resumed.text == "All paused downloads continue.\n" && resumed.status == 0, "\(resumed.stderr)")
        #expect(try await Self.states(service).contains("paused") == false)

        let removed = try await service.tow(["remove", "--finished"])
        #expect(removed.text == "Removed 2 downloads from the list.\n", "\(removed.stderr)")
        #expect(try await Self.states(service).count == 1)
        #expect(FileManager.default.fileExists(atPath: place.path("downloads/a.bin")), "files are kept")
        let last = try await service.tow(["remove", "--all", "--files"])
        #expect(last.text == "Removed 1 download from the list.\n", "\(last.stderr)")
        #expect(try await Self.states(service).isEmpty)
        #expect(
            try FileManager.default.contentsOfDirectory(atPath: place.path("downloads")).sorted() == ["a.bin", "b.bin"])
        service.kill()
        await server.stop()
    }

    /// More downloads than one page of the list has, and than run at the same time.
    @Test(.timeLimit(.minutes(2))) func everyPageOfTheListIsRemoved() async throws {
        let place = try TestDirectory()
        let service = try ServiceProcess(place)
        _ = try await service.tow(["list"])
        let links = (0..<1500).map { "http://127.0.0.1:9/\($0)\n" }.joined()
        try Data(links.utf8).write(to: place.file("links"))
        _ = try await service.tow(["add", "--paused", "-i", place.path("links")])
        let removed = try await service.tow(["remove", "--all"])
        #expect(removed.text == "Removed 1500 downloads from the list.\n", "\(removed.stderr)")
        #expect(try await Self.states(service).isEmpty)
        service.kill()
    }

    @Test(arguments: [
        ["pause"], ["resume"], ["remove"], ["pause", "--all", "ABCDEF"], ["remove", "--all", "--finished"],
    ]) func eitherIDsOrAFlagAreNeeded(_ words: [String]) async throws {
        let place = try TestDirectory()
        let result = try await CommandRun.run(words + ["--state", place.path("state")])
        #expect(result.status == 2 && result.stderr.contains("--all"), "\(result.stderr)")
    }

    // MARK: Starting

    /// The environment of a user whose configuration file selects a free port.
    private static func home(_ place: TestDirectory, listen: String) throws -> [String: String] {
        try FileManager.default.createDirectory(
            atPath: place.path(".config/towline"), withIntermediateDirectories: true)
        try Data("listen: \(listen)\n".utf8).write(to: place.file(".config/towline/towd.yaml"))
        return ["HOME": place.url.path, "PATH": CommandRun.products.path + ":/usr/bin:/bin"]
    }

    /// A port alone is understood, as users of other servers expect.
    @Test(.timeLimit(.minutes(2)), arguments: ["%", ":%", "127.0.0.1:%"])
    func addSaysThatItStartedTheServiceAndWhereThePageIs(_ form: String) async throws {
        let place = try TestDirectory()
        let port = Loopback.freePort()
        let environment = try Self.home(place, listen: "\"\(form.replacingOccurrences(of: "%", with: "\(port)"))\"")
        let words = ["add", "--paused", "http://127.0.0.1:9/a"]
        let first = try await CommandRun.run(words, environment: environment)
        let said = "tow: started towd in the background. Its web page is http://127.0.0.1:\(port)/; 'tow page'"
        #expect(first.status == 0 && first.stderr.hasPrefix(said), "\(first.stderr)")
        let second = try await CommandRun.run(words, environment: environment)
        #expect(second.status == 0 && second.stderr == "", "\(second.stderr)")
        let again = try await CommandRun.run(["service", "start"], environment: environment)
        #expect(again.text.hasPrefix("towd is already running. Its web page is http://127.0.0.1:\(port)/"))
        _ = try await CommandRun.run(["service", "stop"], environment: environment)
        let started = try await CommandRun.run(["service", "start"], environment: environment)
        #expect(started.text.hasPrefix("towd is running. Its web page is http://"), "\(started.stderr)")
        #expect(try await CommandRun.run(["list"], environment: environment).status == 0)
        _ = try await CommandRun.run(["service", "stop"], environment: environment)
    }

    @Test(arguments: ["1.2.3.4:x", "70000", "[::1"]) func anInvalidAddressNamesTheForm(_ text: String)
        async throws
    {
        let place = try TestDirectory()
        let run = try await CommandRun(
            ["--state", place.path("state"), "--listen", text],
            program: CommandRun.products.appendingPathComponent("towd")
        ).finish()
        #expect(run.status != 0 && run.stderr.contains("expected HOST:PORT or a port"), "\(run.stderr)")
    }

    /// In a desktop session, the page opens in the browser. No argument of a program contains a code.
    @Test(.timeLimit(.minutes(2))) func pageOpensInADesktopSession() async throws {
        let place = try TestDirectory()
        let environment = try Self.home(place, listen: "\(Loopback.freePort())")
        let opener =
            "#!/bin/sh\nprintf '%s\\n' \"$@\" >'\(place.path("arguments"))'\ncp \"$1\" '\(place.path("opened"))'\n"
        try FileManager.default.createDirectory(atPath: place.path("bin"), withIntermediateDirectories: true)
        try Data(opener.utf8).write(to: place.file("bin/xdg-open"))
        try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: place.path("bin/xdg-open"))
        let desktop = environment.merging([
            "DISPLAY": ":0", "PATH": place.path("bin") + ":" + CommandRun.products.path + ":/usr/bin:/bin",
        ]) { $1 }
        let terminal = try PseudoTerminal(["page"], environment: desktop)
        #expect(try await terminal.end().status == 0)
        let printed = try #require(terminal.text.firstMatch(of: /http:\/\/127.0.0.1:\d+\/#code=([0-9a-f]{64})/))
        let end = ContinuousClock.now + .seconds(30)
        while !FileManager.default.fileExists(atPath: place.path("opened")), ContinuousClock.now < end {
            try await Task.sleep(for: .milliseconds(20))
        }
        let opened = try String(contentsOf: place.file("opened"), encoding: .utf8)
        let code = try #require(opened.firstMatch(of: /url=http:\/\/127.0.0.1:\d+\/#code=([0-9a-f]{64})"/))
        #expect(code.1 != printed.1, "the printed link stays valid")
        let arguments = try String(contentsOf: place.file("arguments"), encoding: .utf8)
        #expect(!arguments.contains("code") && arguments.hasSuffix(".html\n"), "\(arguments)")
        let mode =
            try FileManager.default.attributesOfItem(
                atPath: arguments.trimmingCharacters(in: .newlines))[.posixPermissions] as? Int
        #expect(mode == 0o600)

        try FileManager.default.removeItem(atPath: place.path("opened"))
        let quiet = try await CommandRun.run(["page"], environment: desktop)
        #expect(quiet.status == 0 && quiet.text.contains("#code="), "\(quiet.stderr)")
        #expect(!FileManager.default.fileExists(atPath: place.path("opened")), "no browser opens from a script")
        _ = try await CommandRun.run(["service", "stop"], environment: environment)
    }

    /// A machine without systemd, and a container whose systemd has no manager for users.
    @Test(
        .timeLimit(.minutes(2)),
        arguments: ["", "#!/bin/sh\necho 'Failed to connect to bus: No medium found'\nexit 1\n"])
    func statusIsClearWithoutSystemd(_ control: String) async throws {
        let place = try TestDirectory()
        try FileManager.default.createDirectory(atPath: place.path("bin"), withIntermediateDirectories: true)
        if !control.isEmpty {
            try Data(control.utf8).write(to: place.file("bin/systemctl"))
            try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: place.path("bin/systemctl"))
        }
        let environment = ["HOME": place.url.path, "PATH": place.path("bin")]
        let result = try await CommandRun.run(["service", "status"], environment: environment)
        #expect(result.status == 1)
        let reason = control.isEmpty ? "not installed" : "no user manager: Failed to connect to bus: No medium found"
        #expect(result.text.contains("\nsystemd   \(reason)\n"), "\(result.text)")
        #expect(
            result.text.contains("\nat boot   no. 'tow add' and 'tow service start' start towd\n"), "\(result.text)")
        #expect(!result.text.contains("enabled") && !result.text.contains("state "), "\(result.text)")
    }
}
