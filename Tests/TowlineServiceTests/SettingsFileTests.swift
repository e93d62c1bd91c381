import Foundation
import Testing
import Towline
@testable import TowlineService

/// Tests of the configuration file.
@Suite struct SettingsFileTests {
    private func file(_ text: String) throws -> URL {
        let file = FileManager.default.temporaryDirectory.appendingPathComponent("towd-\(UUID().uuidString).yaml")
        try Data(text.utf8).write(to: file)
        return file
    }

    /// `tow` does not read the standard file. With another socket there, `tow` would report that no service runs.
    @Test(arguments: ["state", "socket"]) func whatTowHasToKnowIsNotInTheFileThatIsReadUnasked(_ key: String) throws {
        let file = try file("downloads: /srv\n\(key): /srv/elsewhere\n")
        defer { try? FileManager.default.removeItem(at: file) }
        let error = #expect(throws: TowlineError.self) { try ServiceSettings(standardFile: file.path) }
        #expect(error?.code == .unusableOption)
        #expect(error?.message.contains("--\(key)") == true)
        // A file that the user names explicitly may contain these options.
        let settings = try ServiceSettings(file: file.path)
        #expect(settings.state ?? settings.socket == "/srv/elsewhere")
    }

    /// `tow add` starts the service with the state directory alone.
    @Test func theDownloadsDirectoriesAreRemembered() throws {
        let directory = FileManager.default.temporaryDirectory.appendingPathComponent("towd-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: false)
        defer { try? FileManager.default.removeItem(at: directory) }
        let remembered = RememberedDirectories(in: directory.path)
        #expect(try remembered.read() == [])
        try remembered.store(["/srv/films", "/srv/a\nb"])
        #expect(try remembered.read() == ["/srv/films", "/srv/a\nb"])
        for content in ["", "[", "[1]", "[\"relative\"]"] {
            let file = directory.appendingPathComponent("downloads.json")
            try Data(content.utf8).write(to: file)
            #expect(throws: TowlineError.self, "\(content)") { try remembered.read() }
        }
        try remembered.store(["/srv"])
        #expect(try remembered.read() == ["/srv"])
    }

    @Test(arguments: [("host: a\nhost: b\n", "'host' is there more than once"), ("host: a\nlisten: [\n", "line ")])
    func anErrorOfTheParserIsOneLine(_ text: String, _ words: String) throws {
        let file = try file(text)
        defer { try? FileManager.default.removeItem(at: file) }
        let error = try #require(#expect(throws: TowlineError.self) { try ServiceSettings(standardFile: file.path) })
        let reason = error.message.replacing(file.path, with: "F")
        #expect(reason.contains(words) && !reason.contains("\\x0a") && reason.utf8.count < 200, "\(reason)")
    }

    @Test(arguments: [true, false]) func rootIsConfirmedByATruthValue(_ value: Bool) throws {
        let file = try file("allow-root: \(value)\n")
        defer { try? FileManager.default.removeItem(at: file) }
        #expect(try ServiceSettings(standardFile: file.path).allowsRoot == value)
    }

    @Test func rootIsNotConfirmedByText() throws {
        let file = try file("allow-root: 'maybe'\n")
        defer { try? FileManager.default.removeItem(at: file) }
        let error = #expect(throws: TowlineError.self) { try ServiceSettings(standardFile: file.path) }
        #expect(error?.message.contains("'allow-root' must be true or false") == true)
    }

    @Test func allElseIs() throws {
        let file = try file("downloads: [/a, /b]\nlisten: none\nhost: nas.example\nprivate-addresses: nobody\n")
        defer { try? FileManager.default.removeItem(at: file) }
        let settings = try ServiceSettings(standardFile: file.path)
        #expect(settings.downloads == ["/a", "/b"])
        #expect(settings.host == ["nas.example"])
        #expect(settings.privateAddresses == "nobody")
    }
}
