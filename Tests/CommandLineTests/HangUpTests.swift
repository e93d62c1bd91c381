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

    @Test(.timeLimit(.minutes(2))) func theConfigurationIsReadAgain() async throws {
        let place = try TestDirectory()
        try FileManager.default.createDirectory(
            atPath: place.path(".config/towline"), withIntermediateDirectories: true)
        let service = try await Self.start(place)
        let number = try #require(service.number)
        // The second message shows that an error changes nothing and that the service continues.
        for (text, message) in [("host: nas.example\n", "was read again"), ("host: a b\n", "invalid value 'a b'")] {
            try Data(text.utf8).write(to: place.file(".config/towline/towd.yaml"))
            kill(number, SIGHUP)
            let end = ContinuousClock.now + .seconds(60)
            while try !Self.log(place).contains(message), ContinuousClock.now < end {
                try await Task.sleep(for: .milliseconds(50))
            }
            #expect(try Self.log(place).contains(message))
        }
        #expect(try await service.tow(["list"]).status == 0)
        service.kill()
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
