import Foundation
import Testing

@testable import tow

/// Tests the completions that a shell offers when a user presses Tab.
struct CompletionTests {
    /// Returns bash's completions of the last word: sources the generated script and calls its function, as bash does.
    private func complete(_ words: [String], program: String = "tow", in directory: URL? = nil) async throws -> [String]
    {
        let script = """
            source <("$PROGRAM" --generate-completion-script bash)
            COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMP_LINE="$*"
            COMP_POINT=${#COMP_LINE} COMPREPLY=()
            "$(complete -p "${PROGRAM##*/}" | sed 's/.*-F \\([^ ]*\\).*/\\1/')" "$1" "${@: -1}" "${@: -2:1}"
            printf '%s\\n' "${COMPREPLY[@]}"
            """
        let path = CommandRun.products.appendingPathComponent(program).path
        let result = try await CommandRun(
            ["--norc", "-c", script, "bash", path] + words, directory: directory, environment: ["PROGRAM": path],
            program: URL(fileURLWithPath: "/bin/bash")
        ).finish()
        return result.text.split(separator: "\n").map { String($0) }
    }

    @Test func commandsAndOptions() async throws {
        let commands = try await complete([""])
        #expect(Set(["get", "status", "probe", "add", "list", "watch", "limit", "help"]).isSubset(of: commands))
        #expect(try await complete(["wa"]) == ["watch"])
        #expect(try await complete(["get", "--unsafe"]) == ["--unsafe-resume"])
        #expect(try await complete(["get", "--if-exists", ""]) == ["skip", "fail", "overwrite", "rename", "update"])
        #expect(try await complete(["get", "--progress", "p"]) == ["plain"])
        #expect(try await complete(["list", "--order", "q"]) == ["queue"])
        #expect(try await complete(["watch", "--only", "f"]) == ["finished", "failed", "follow-up-failed"])
    }

    @Test func filesAndDirectories() async throws {
        let directory = try TestDirectory()
        try Data().write(to: directory.file("file one.iso"))
        try FileManager.default.createDirectory(at: directory.file("folder"), withIntermediateDirectories: true)
        for words in [
            ["status"], ["get", "-o"], ["get", "--input-file"], ["get", "--cacert"], ["probe", "--user-file"],
            ["add", "-i"],
        ] {
            #expect(try await complete(words + ["fi"], in: directory.url) == ["file one.iso"], "\(words)")
        }
        #expect(try await complete(["get", "--directory", "f"], in: directory.url) == ["folder"])
        #expect(try await complete(["--downloads", "f"], program: "towd", in: directory.url) == ["folder"])
        // Files are not offered for a URL.
        #expect(try await complete(["get", "f"], in: directory.url) == [])
    }

    @Test func namesOfDownloadsComeFromTheService() async throws {
        let service = try ServiceProcess(try TestDirectory())
        let added = try await service.tow(["list"])
        #expect(added.status == 0)
        let rows = try await service.tow(["add", "--paused", "--json", "http://127.0.0.1:9/a", "http://127.0.0.1:9/b"])
            .objects
        let ids = rows.compactMap { $0["id"] as? String }
        #expect(ids.count == 2)
        let short = Set(ids.map { String($0.suffix(6)) })
        for command in ["show", "pause", "remove"] {
            #expect(Set(try await complete([command] + service.options + [""])) == short)
        }
        let first = String(ids[0].suffix(6))
        #expect(try await complete(["pause"] + service.options + [first.lowercased()]) == [first.lowercased()])
        #expect(try await complete(["limit"] + service.options + ["2M", first]) == [first])
        // Without a service there are no completions, and no wait.
        service.kill()
        #expect(try await complete(["show"] + service.options + [""]) == [])
    }

    @Test func shortNamesFirstThenWholeOnes() {
        let ids = ["01AAAAAAAAAAAAAAAAAAABCDEF", "01AAAAAAAAAAAAAAAAAAAXYZ01"]
        #expect(DownloadCompletion.candidates(ids, beginning: "") == ["ABCDEF", "AXYZ01"])
        #expect(DownloadCompletion.candidates(ids, beginning: "AXY") == ["AXYZ01"])
        #expect(DownloadCompletion.candidates(ids, beginning: "01A") == ids)
        #expect(DownloadCompletion.candidates(ids, beginning: "axy") == ["axyz01"])
        #expect(DownloadCompletion.candidates(ids, beginning: "zz") == [])
        #expect(DownloadCompletion.value(of: "--state", in: ["tow", "--state", "/a"]) == "/a")
        #expect(DownloadCompletion.value(of: "--state", in: ["tow", "--state=/a b"]) == "/a b")
        #expect(DownloadCompletion.value(of: "--state", in: ["tow", "--state"]) == nil)
    }

    /// Installed shells can read their scripts.
    @Test(arguments: ["bash", "zsh", "fish"])
    func scriptsAreSound(_ shell: String) async throws {
        for program in ["tow", "towd"] {
            let directory = try TestDirectory()
            let script = directory.file("script")
            let text =
                "\"$1\" --generate-completion-script \"$2\" >\"$3\" && [ -s \"$3\" ] || exit 1; "
                + "! command -v \"$2\" >/dev/null || \"$2\" -n \"$3\""
            let path = CommandRun.products.appendingPathComponent(program).path
            let result = try await CommandRun(
                ["-c", text, "sh", path, shell, script.path], program: URL(fileURLWithPath: "/bin/sh")
            ).finish()
            #expect(result.status == 0, "\(result.stderr)")
        }
    }
}
