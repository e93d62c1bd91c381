import Foundation
import Testing
import Towline
@testable import TowlineService

/// Tests of the configuration file.
@Suite struct SettingsFileTests {
    private func file(_ text: String) throws -> URL {
        let file = FileManager.default.temporaryDirectory.appendingPathComponent("towd-\(UUID().uuidString).yaml")
        try Data(text.utf8).write(to: file)
        // Independent of the umask, which can be 0.
        try #require(chmod(file.path, 0o600) == 0)
        return file
    }

    /// `tow` does not read the standard file. With another socket there, `tow` would report that no service runs.
    @Test(arguments: ["state", "socket"]) func whatTowHasToKnowIsNotInTheFileThatIsReadUnasked(_ key: String) throws {
        let file = try file("downloads: /srv\n\(key): /srv/elsewhere\n")
        defer { try? FileManager.default.removeItem(at: file) }
        let error = #expect(throws: TowlineError.self) { try ServiceSettings(standardFile: file.path) { _ in } }
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
        let error = try #require(
            #expect(throws: TowlineError.self) { try ServiceSettings(standardFile: file.path) { _ in } })
        let reason = error.message.replacing(file.path, with: "F")
        #expect(reason.contains(words) && !reason.contains("\\x0a") && reason.utf8.count < 200, "\(reason)")
    }

    /// Another user who can change the file could choose the directories and the addresses of the service.
    @Test(
        arguments: [
            (0o600, getuid(), nil), (0o644, getuid(), nil), (0o444, 0, nil), (0o646, getuid(), "every user"),
            (0o666, 0, "every user"), (0o602, getuid(), "every user"), (0o664, getuid(), "users of a group (12345)"),
            (0o600, 54321, "another user (54321)"), (0o644, 54321, "another user (54321)"),
        ] as [(Int, uid_t, String?)])
    func aFileThatAnotherUserCanChangeIsNotUsed(_ mode: Int, _ owner: uid_t, _ danger: String?) throws {
        let file = try file("host: nas.example\n")
        defer { try? FileManager.default.removeItem(at: file) }
        chmod(file.path, mode_t(mode))
        guard chown(file.path, owner, 12345) == 0 || danger == nil && owner == getuid() else { return }
        let link = file.appendingPathExtension("link")
        try FileManager.default.createSymbolicLink(at: link, withDestinationURL: file)
        defer { try? FileManager.default.removeItem(at: link) }
        for path in [file.path, link.path] {
            var warnings: [String] = []
            let settings = try ServiceSettings(standardFile: path) { warnings.append($0) }
            #expect(settings.host == (danger == nil ? ["nas.example"] : []))
            #expect(warnings.count == (danger == nil ? 0 : 1))
            if let danger {
                #expect(warnings.first?.contains(danger) == true, "\(warnings)")
                let error = #expect(throws: TowlineError.self) { try ServiceSettings(file: path) }
                #expect(error?.code == .unusableOption && error?.message.contains(danger) == true)
            } else {
                #expect(try ServiceSettings(file: path) == settings)
            }
        }
    }

    @Test(arguments: [true, false]) func rootIsConfirmedByATruthValue(_ value: Bool) throws {
        let file = try file("allow-root: \(value)\n")
        defer { try? FileManager.default.removeItem(at: file) }
        #expect(try ServiceSettings(standardFile: file.path, warn: { _ in }).allowsRoot == value)
    }

    @Test func rootIsNotConfirmedByText() throws {
        let file = try file("allow-root: 'maybe'\n")
        defer { try? FileManager.default.removeItem(at: file) }
        let error = #expect(throws: TowlineError.self) { try ServiceSettings(standardFile: file.path) { _ in } }
        #expect(error?.message.contains("'allow-root' must be true or false") == true)
    }

    @Test func allElseIs() throws {
        let file = try file("downloads: [/a, /b]\nlisten: none\nhost: nas.example\nprivate-addresses: nobody\n")
        defer { try? FileManager.default.removeItem(at: file) }
        let settings = try ServiceSettings(standardFile: file.path) { _ in }
        #expect(settings.downloads == ["/a", "/b"])
        #expect(settings.host == ["nas.example"])
        #expect(settings.privateAddresses == "nobody")
    }
}
