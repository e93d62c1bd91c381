import Foundation
import TestServers
import Testing

/// The manual pages document every existing option, and no other.
struct ManualTests {
    private static let pages = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent().appendingPathComponent("docs/man")

    /// A section of a page: the options that it explains, and the sections that it refers to.
    private struct Section {
        var options: Set<String> = []
        var references: Set<String> = []
    }

    /// The sections of a page by their titles.
    private func sections(_ name: String) throws -> [String: Section] {
        let text = try String(contentsOf: Self.pages.appendingPathComponent(name), encoding: .utf8)
        var sections: [String: Section] = [:]
        var title = ""
        for line in text.split(separator: "\n") {
            let words = line.split(separator: " ").map { String($0) }
            switch words[0] {
            case ".Ss", ".Sh":
                title = words.dropFirst().joined(separator: " ")
                sections[title] = Section()
            case ".Sx":
                let name = words.dropFirst().joined(separator: " ")
                sections[title, default: Section()].references.insert(name.trimmingCharacters(in: [".", ",", " "]))
            case ".It":
                for (macro, option) in zip(words, words.dropFirst()) where macro == "Fl" {
                    sections[title, default: Section()].options.insert("-" + option)
                }
            default: break
            }
        }
        return sections
    }

    /// Returns the options that the help of a command lists, without those that every command has.
    private func options(_ program: String, _ words: [String]) async throws -> Set<String> {
        let help = try await help(program, words)
        var options: Set<String> = []
        for match in help.matches(of: /\n  (-\w)?(?:, )?(--[a-z0-9-]+)?/) {
            for option in [match.1, match.2] { if let option { options.insert(String(option)) } }
        }
        return options.subtracting(["--version", "-h", "--help"])
    }

    private func help(_ program: String, _ words: [String]) async throws -> String {
        let process = Process()
        process.executableURL = CommandRun.products.appendingPathComponent(program)
        process.arguments = words + ["--help"]
        process.environment = ["COLUMNS": "80"]
        return String(decoding: try await process.runToEnd(), as: UTF8.self)
    }

    @Test func towHasAPartForEachCommandWithItsOptions() async throws {
        let sections = try sections("tow.1")
        var explained: Set<String> = []
        for (title, section) in sections where title.hasPrefix("tow ") {
            let told = section.references.reduce(section.options) { $0.union(sections[$1]?.options ?? []) }
            for name in title.dropFirst(4).split(separator: ",").map({ $0.trimmingCharacters(in: [" "]) }) {
                explained.insert(name)
                var wanted = try await options("tow", [name])
                if name == "service" {
                    for part in ["install", "remove", "status"] {
                        wanted.formUnion(try await options("tow", [name, part]))
                    }
                }
                #expect(told == wanted, "\(title)")
            }
            let unknown = section.references.filter { sections[$0] == nil }
            #expect(unknown == [], "\(title)")
        }
        let commands = try await help("tow", []).matches(of: /\n  ([a-z]+) {2,}[A-Z]/).map { String($0.1) }
        #expect(commands.count >= 14)
        #expect(explained == Set(commands))
        #expect(sections["Options of all commands"]?.options == ["--version", "-h", "--help"])
    }

    @Test func towdHasAllItsOptions() async throws {
        let told = try sections("towd.1").values.reduce(into: Set<String>()) { $0.formUnion($1.options) }
        let wanted = try await options("towd", [])
        #expect(wanted.count >= 6)
        #expect(told == wanted.union(["--version", "-h", "--help"]))
    }

    @Test(arguments: ["tow.1", "towd.1"])
    func thePagesAreSound(_ name: String) async throws {
        let words = ["-Tlint", "-Wwarning", Self.pages.appendingPathComponent(name).path]
        let result = try await CommandRun(words, program: URL(fileURLWithPath: "/usr/bin/mandoc")).finish()
        #expect(result.status == 0)
        #expect(result.text == "")
    }
}
