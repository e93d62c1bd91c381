import Foundation
import Testing
import TowlineCore
import TowlineSystem

@Suite("Follow-up commands", .timeLimit(.minutes(2)))
struct CommandRunnerTests {
    private func run(_ arguments: String...) async throws -> (CommandRunner.End, String) {
        let outcome = try await CommandRunner().run(arguments)
        return (outcome.end, String(decoding: outcome.tail, as: UTF8.self))
    }

    @Test("a command returns its status and both outputs, and runs in the directory /")
    func outcome() async throws {
        let outcome = try await run("/bin/sh", "-c", "pwd; echo wrong >&2; exit 7")
        #expect(outcome == (.exited(7), "/\nwrong\n"))
        #expect(try await run("true") == (.exited(0), ""))
        #expect(try await run("/bin/sh", "-c", "kill -9 $$").0 == .killed(SIGKILL))
    }

    @Test("arguments are passed unchanged: they are not split, expanded or run")
    func noShell() async throws {
        let hostile = ["$(touch /tmp/tow-evil)", "; rm -rf x", "a b", "*", "`id`", "'\"", "", "\n", "-n"]
        let outcome = try await CommandRunner().run(["/usr/bin/printf", "<%s>"] + hostile)
        #expect(String(decoding: outcome.tail, as: UTF8.self) == hostile.map { "<\($0)>" }.joined())
    }

    @Test("a command has no input and only three descriptors")
    func descriptors() async throws {
        // Opens a descriptor without O_CLOEXEC, as a careless library might do.
        let careless = open("/etc/passwd", O_RDONLY)
        defer { close(careless) }
        // ls itself has one more descriptor open.
        let (end, text) = try await run("/bin/sh", "-c", "cat; exec ls /proc/self/fd")
        #expect(end == .exited(0))
        #expect(text.split(separator: "\n").compactMap { Int($0) }.sorted() == [0, 1, 2, 3])
    }

    @Test("the environment contains only the inherited variables")
    func environment() async throws {
        setenv("TOWLINE_TEST_SECRET", "canary", 1)
        setenv("LC_TIME", "C", 1)
        let (end, text) = try await run("/usr/bin/env")
        #expect(end == .exited(0))
        let names = text.split(separator: "\n").compactMap { $0.split(separator: "=").first.map(String.init) }
        #expect(Set(names).isSubset(of: CommandRunner.inherited))
        #expect(Set(names).isSuperset(of: ["PATH", "LC_TIME"]))
    }

    @Test("a command does not inherit blocked or ignored signals")
    func signals() async throws {
        let (_, text) = try await run("/bin/sh", "-c", "grep -E 'SigBlk|SigIgn' /proc/self/status")
        let masks = text.split(separator: "\n").compactMap { $0.split(separator: "\t").last }
            .compactMap { UInt64($0, radix: 16) }
        // The C library uses the signals 32 and 33 itself (signal(7)).
        #expect(masks.map { $0 & ~0x1_8000_0000 } == [0, 0])
    }

    @Test("only the end of a long output is kept")
    func tail() async throws {
        let outcome = try await CommandRunner().run(["/bin/sh", "-c", "seq 1 300000; printf last"])
        #expect(outcome.tail.count == CommandRunner.tailLength)
        #expect(String(decoding: outcome.tail, as: UTF8.self).hasSuffix("299999\n300000\nlast"))
    }

    private static let unusable: [[String]] = [[], [""], ["/none/such"], ["a\0b"], ["/etc/passwd"]]

    @Test("a command that cannot be started fails with commandFailed", arguments: Self.unusable)
    func cannotRun(arguments: [String]) async {
        await #expect { try await CommandRunner().run(arguments) } throws: {
            ($0 as? TowlineError)?.code == .commandFailed
        }
    }

    @Test("a command over its time limit ends with its child processes, even if it ignores SIGTERM")
    func timeLimit() async throws {
        let runner = CommandRunner(timeLimit: .milliseconds(500), grace: .milliseconds(300))
        let polite = try await runner.run(["/bin/sh", "-c", "trap 'echo bye; exit 3' TERM; sleep 1000 & echo $!; wait"])
        #expect(polite.end == .timedOut)
        let lines = String(decoding: polite.tail, as: UTF8.self).split(separator: "\n")
        #expect(lines.last == "bye")
        try await expectGone(try #require(lines.first.flatMap { Int32($0) }))

        let deaf = try await runner.run(["/bin/sh", "-c", "trap '' TERM; echo $$; while :; do sleep 1000; done"])
        #expect(deaf.end == .timedOut)
        let text = String(decoding: deaf.tail, as: UTF8.self).split(separator: "\n")
        try await expectGone(try #require(text.first.flatMap { Int32($0) }))
    }

    @Test("cancelling the task ends the command")
    func cancelled() async throws {
        let mark = NSTemporaryDirectory() + "/tow-command-" + UUID().uuidString
        defer { try? FileManager.default.removeItem(atPath: mark) }
        let task = Task {
            try await CommandRunner().run([
                "/bin/sh", "-c", "echo $$ > \(mark).new; mv \(mark).new \(mark); sleep 1000",
            ])
        }
        while !FileManager.default.fileExists(atPath: mark) { try await Task.sleep(for: .milliseconds(5)) }
        task.cancel()
        await #expect { try await task.value } throws: { ($0 as? TowlineError)?.code == .cancelled }
        let text = try String(contentsOfFile: mark, encoding: .utf8).trimmingCharacters(in: .whitespacesAndNewlines)
        try await expectGone(try #require(Int32(text)))
    }

    @Test("the end of a command does not wait for its background processes")
    func background() async throws {
        let (end, text) = try await run("/bin/sh", "-c", "sleep 1000 & echo $!")
        #expect(end == .exited(0))
        let process = try #require(Int32(text.trimmingCharacters(in: .whitespacesAndNewlines)))
        #expect(kill(process, 0) == 0)
        kill(process, SIGKILL)
    }

    @Test("commands leave no zombies and no descriptors")
    func leftovers() async throws {
        _ = try await run("true")
        let before = try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").count
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<200 {
                group.addTask { _ = try await CommandRunner().run(["/bin/sh", "-c", "exec 1>&- 2>&-; exit 0"]) }
            }
            try await group.waitForAll()
        }
        // Concurrent tests also have descriptors open, but only for a short time.
        var after = Int.max
        for _ in 0..<100 where after >= before + 30 {
            after = try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").count
            if after >= before + 30 { try await Task.sleep(for: .milliseconds(100)) }
        }
        #expect(after < before + 30)
        let children = try String(contentsOfFile: "/proc/self/task/\(getpid())/children", encoding: .utf8)
        for child in children.split(separator: " ") {
            let status = (try? String(contentsOfFile: "/proc/\(child)/stat", encoding: .utf8)) ?? ""
            #expect(!status.contains("(sh) Z"))
        }
    }

    /// Waits until a process has ended, or is a zombie that another process must wait for.
    private func expectGone(_ process: Int32, _ location: SourceLocation = #_sourceLocation) async throws {
        for _ in 0..<2000 {
            let status = (try? String(contentsOfFile: "/proc/\(process)/stat", encoding: .utf8)) ?? ") Z"
            if status.contains(") Z") { return }
            try await Task.sleep(for: .milliseconds(5))
        }
        Issue.record("\(process) is still there", sourceLocation: location)
    }
}

@Suite("Command templates")
struct CommandTemplateTests {
    @Test("placeholders are replaced within their argument, once; other text is unchanged")
    func filled() throws {
        let url = try HTTPURL(parsing: "https://me:secret@files.example/a?Signature=abc&b=c")
        let template = CommandTemplate([
            "mv", "{path}", "to={directory}/new/{name}", "{url-without-secrets}", "{other}{name", "}{", "{{name}}",
        ])
        #expect(
            template.filled(directory: "/d", name: "{path} $(x)", url: url) == [
                "mv", "/d/{path} $(x)", "to=/d/new/{path} $(x)", "https://files.example/a?Signature=&b=c",
                "{other}{name", "}{", "{{path} $(x)}",
            ])
    }
}
