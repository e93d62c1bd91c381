import FaultServer
import Foundation
import Testing

@testable import tow

/// Tests `tow service` with a stand-in for `systemctl` that acts like systemd: it starts the program that the unit
/// names.
@Suite(.serialized) struct ServiceUnitTests {
    /// A home directory, with programs that come before those of the system.
    private final class Home {
        let directory: TestDirectory

        /// - Parameters:
        /// - control: The stand-in for `systemctl`; `nil` for no program of that name.
        /// - trial: The exit status of the stand-in for `systemd-run`, which tries the restrictions of the unit.
        init(control: String? = Home.control, trial: Int = 0) throws {
            directory = try TestDirectory()
            try FileManager.default.createDirectory(at: directory.file("bin"), withIntermediateDirectories: true)
            guard let control else { return }
            try install("systemctl", control)
            try install("systemd-run", "#!/bin/sh\nprintf '%s\\n' \"$@\" >\"$HOME/tried\"\nexit \(trial)\n")
        }

        private func install(_ name: String, _ text: String) throws {
            try Data(text.utf8).write(to: directory.file(name))
            // Another process writes the program: a program that this process, or briefly any child of another test,
            // has open for writing cannot be run (execve(2), ETXTBSY).
            let copying = try Process.run(
                URL(fileURLWithPath: "/usr/bin/install"),
                arguments: ["-m", "0755", directory.path(name), directory.path("bin/" + name)])
            copying.waitUntilExit()
        }

        deinit { if let process = try? owner { kill(process, SIGKILL) } }

        var unit: URL { directory.file(".config/systemd/user/towd.service") }
        var unitText: String { (try? String(contentsOf: unit, encoding: .utf8)) ?? "" }

        /// The arguments of each call of the stand-in.
        var asked: [String] {
            ((try? String(contentsOf: directory.file("asked"), encoding: .utf8)) ?? "").split(separator: "\n").map {
                String($0)
            }
        }

        /// The process that holds the lock of the list.
        var owner: pid_t {
            get throws {
                let text = try String(contentsOf: directory.file(".local/state/towline/registry.lock"), encoding: .utf8)
                return try #require(text.split(separator: " ").first.flatMap { pid_t($0) })
            }
        }

        func tow(_ arguments: String...) async throws -> CommandRun.Result {
            let hasControl = FileManager.default.fileExists(atPath: directory.path("bin/systemctl"))
            return try await CommandRun.run(
                arguments,
                environment: [
                    "HOME": directory.url.path, "PATH": directory.path("bin") + (hasControl ? ":/usr/bin:/bin" : ""),
                ])
        }

        static let control = """
            #!/bin/sh
            echo "$*" >>"$HOME/asked"
            unit=$HOME/.config/systemd/user/towd.service
            wants=$HOME/.config/systemd/user/default.target.wants
            isActive() { [ -f "$HOME/pid" ] && kill -0 "$(cat "$HOME/pid")" 2>/dev/null; }
            start() {
                isActive && return
                eval "setsid $(sed -n 's/^ExecStart=//p' "$unit") </dev/null >/dev/null 2>&1 &
                    echo \\$! >\\"\\$HOME/pid\\""
            }
            case "$2 $3" in
            "enable --now") mkdir -p "$wants" && ln -sf "$unit" "$wants/towd.service" && start ;;
            "start towd.service") start ;;
            "disable --now")
                rm -f "$wants/towd.service"
                isActive && kill "$(cat "$HOME/pid")"
                rm -f "$HOME/pid" ;;
            "is-active towd.service") isActive && echo active || { echo inactive; exit 3; } ;;
            "is-enabled towd.service") [ -L "$wants/towd.service" ] && echo enabled || { echo disabled; exit 1; } ;;
            esac
            """
    }

    @Test func installedItRunsAndRemovedItIsGone() async throws {
        let home = try Home()
        let before = try await home.tow("service", "status")
        #expect(before.status == 1)
        #expect(before.text.contains("unit      none") && before.text.contains("running   no response"))
        #expect(before.text.contains("at boot   no, because the unit is not enabled"))

        let installed = try await home.tow(
            "service", "install", "--listen", "none", "--downloads", home.directory.path("to here"))
        #expect(installed.status == 0, "\(installed.stderr)")
        #expect(installed.text.contains("sudo loginctl enable-linger $USER"))
        #expect(!installed.text.contains("web page"), "--listen none: no web page")
        #expect(
            home.asked.suffix(4) == [
                "--user daemon-reload", "--user is-active towd.service", "--user enable --now towd.service",
                "--user try-restart towd.service",
            ])
        let program = CommandRun.products.appendingPathComponent("towd").path
        let place = home.directory.path("to here")
        #expect(
            home.unitText.contains("\nConditionFileIsExecutable=\(program)\n"),
            "without it a removed program is tried for ever")
        #expect(
            home.unitText.contains("\nExecStart=\"\(program)\" \"--downloads\" \"\(place)\" \"--listen\" \"none\"\n"))

        let status = try await home.tow("service", "status")
        #expect(status.status == 0, "\(status.text)")
        for words in ["enabled   enabled", "state     active", "running   yes: towd 0."] {
            #expect(status.text.contains(words), "\(status.text)")
        }
        #expect(FileManager.default.fileExists(atPath: place))

        let removed = try await home.tow("service", "remove")
        #expect(removed.status == 0, "\(removed.stderr)")
        #expect(home.unitText == "")
        let again = try await home.tow("service", "remove")
        #expect(again.status == 1 && again.stderr.contains("nothing to remove"))
    }

    /// If systemd cannot start a program with the restrictions, the unit leaves them out, so that the service starts.
    @Test(arguments: [0, 226]) func theUnitHasOnlyRestrictionsThatWork(_ trial: Int) async throws {
        let home = try Home(trial: trial)
        let installed = try await home.tow("service", "install", "--listen", "none")
        #expect(installed.status == 0, "\(installed.stderr)")
        let text = try String(contentsOf: home.directory.file("tried"), encoding: .utf8)
        let tried = text.split(separator: "\n").map { String($0) }
        let program = CommandRun.products.appendingPathComponent("towd").path
        #expect(tried.suffix(3) == ["--", program, "--version"])
        for setting in ServiceUnit.namespaceSettings {
            #expect(tried.contains(setting))
            #expect(home.unitText.contains("\n\(setting)\n") == (trial == 0), "\(setting)")
        }
        #expect(home.unitText.contains("InaccessiblePaths") == (trial == 0))
        #expect(installed.text.contains("does not allow user namespaces") == (trial != 0), "\(installed.text)")
        #expect(try await home.tow("service", "remove").status == 0)
    }

    /// A package may be built on another system than the one that runs it.
    @Test func namespacesCanBeLeftOut() async throws {
        let printed = try await Home(trial: 1).tow("service", "install", "--print", "--no-namespaces")
        #expect(printed.status == 0, "\(printed.stderr)")
        #expect(printed.text.contains("\nNoNewPrivileges=yes\n") && !printed.text.contains("PrivateUsers="))
    }

    @Test(arguments: ["--downloads", "--towd", "--state", "--socket"])
    func anEmptyPathIsRefused(_ option: String) async throws {
        let printed = try await Home().tow("service", "install", "--print", option, "")
        #expect(printed.status == 2 && printed.stderr.contains("\(option) is empty"), "\(printed.stderr)")
        #expect(printed.text.isEmpty)
    }

    @Test func theUnitSaysUnderWhichNamesAndForWhom() async throws {
        let printed = try await Home().tow(
            "service", "install", "--print", "--listen", "0.0.0.0:6880", "--host", "a.example", "--host", "b.example",
            "--private-addresses", "nobody")
        #expect(printed.status == 0, "\(printed.stderr)")
        let words = [
            "--listen", "0.0.0.0:6880", "--host", "a.example", "--host", "b.example", "--private-addresses", "nobody",
        ]
        #expect(printed.text.contains(words.map { "\"\($0)\"" }.joined(separator: " ") + "\n"), "\(printed.text)")
    }

    /// A service started by `tow add` is handed over to systemd with its list; afterwards `tow add` starts it through
    /// systemd.
    @Test(.timeLimit(.minutes(2))) func whatRunsIsHandedOver() async throws {
        let home = try Home()
        try FileManager.default.createDirectory(
            at: home.directory.file(".config/towline"), withIntermediateDirectories: true)
        try Data("listen: none\n".utf8).write(to: home.directory.file(".config/towline/towd.yaml"))
        #expect(try await home.tow("add", "--paused", "http://127.0.0.1:9/file").status == 0)
        let first = try home.owner
        let installed = try await home.tow("service", "install", "--listen", "127.0.0.1:0")
        #expect(installed.status == 0)
        let token = home.directory.path(".local/state/towline/token")
        #expect(installed.text.contains("The web page is http://127.0.0.1:"))
        #expect(installed.text.contains("/. Its access token is in the file \(token).\n"))
        let second = try home.owner
        #expect(second != first)
        #expect(try await home.tow("list").text.contains("paused"))

        kill(second, SIGKILL)
        while kill(second, 0) == 0 { try await Task.sleep(for: .milliseconds(20)) }
        #expect(try await home.tow("add", "--paused", "http://127.0.0.1:9/other").status == 0)
        #expect(home.asked.last == "--user start towd.service")
        #expect(try await home.tow("list").text.split(separator: "\n").count == 2)
    }

    /// The service has ended when the command reports that, so that a service started at once can open the list.
    @Test func whatIsAtWorkIsStopped() async throws {
        let home = try Home(control: nil)
        try FileManager.default.createDirectory(
            at: home.directory.file(".config/towline"), withIntermediateDirectories: true)
        try Data("listen: none\n".utf8).write(to: home.directory.file(".config/towline/towd.yaml"))
        let server = try await FaultServer.start(["/file": Resource(length: 8 << 20, rate: 1 << 20)])
        #expect(try await home.tow("add", server.url("/file")).status == 0)
        await server.log.wait { $0.bodyBytesServed("/file") > 300_000 }
        for round in 0..<3 {
            #expect(try await home.tow("service", "stop").status == 0)
            let again = try await home.tow("add", "--paused", server.url("/other\(round)"))
            #expect(again.status == 0, "\(again.stderr)")
        }
        #expect(try await home.tow("service", "stop").status == 0)
        await server.stop()
    }

    /// The command also ends a service that `tow add` started.
    @Test(.timeLimit(.minutes(2))) func whatRunsIsStopped() async throws {
        let home = try Home(control: nil)
        try FileManager.default.createDirectory(
            at: home.directory.file(".config/towline"), withIntermediateDirectories: true)
        try Data("listen: none\n".utf8).write(to: home.directory.file(".config/towline/towd.yaml"))
        #expect(try await home.tow("service", "stop").text == "towd is not running.\n")
        #expect(try await home.tow("add", "--paused", "http://127.0.0.1:9/file").status == 0)
        let process = try home.owner
        let stopped = try await home.tow("service", "stop")
        #expect(stopped.status == 0 && stopped.text.hasPrefix("towd stopped"), "\(stopped.stderr)")
        while kill(process, 0) == 0 { try await Task.sleep(for: .milliseconds(20)) }
        #expect(try await home.tow("list").status == 1)
        #expect(try await home.tow("add", "--paused", "http://127.0.0.1:9/other").status == 0)
        #expect(try await home.tow("list").text.split(separator: "\n").count == 2)
        #expect(try await home.tow("service", "stop").status == 0)
    }

    /// Removing stops the service whether it has a unit or not, with or without systemd.
    @Test(arguments: [false, true]) func removingStopsAServiceWithoutAUnit(_ hasSystemd: Bool) async throws {
        let home = try hasSystemd ? Home() : Home(control: nil)
        try FileManager.default.createDirectory(
            at: home.directory.file(".config/towline"), withIntermediateDirectories: true)
        try Data("listen: none\n".utf8).write(to: home.directory.file(".config/towline/towd.yaml"))
        #expect(try await home.tow("add", "--paused", "http://127.0.0.1:9/file").status == 0)
        let removed = try await home.tow("service", "remove")
        #expect(removed.status == 0 && removed.text.hasPrefix("towd stopped"), "\(removed.text)\(removed.stderr)")
        #expect(try await home.tow("list").status == 1)
        let again = try await home.tow("service", "remove")
        #expect(again.status == 1 && again.stderr.contains("towd is not running"), "\(again.stderr)")
    }

    @Test func withoutAManagerItSaysWhatIsLeftToDo() async throws {
        let home = try Home(
            control: """
                #!/bin/sh
                [ "$1" = --version ] && exit 0
                echo 'Failed to connect to bus: No medium found' >&2
                exit 1
                """)
        let result = try await home.tow("service", "install")
        #expect(result.status == 1)
        #expect(result.stderr.contains("No medium found"))
        #expect(result.stderr.contains("systemctl --user daemon-reload && systemctl --user enable --now towd.service"))
        #expect(home.unitText.hasPrefix(ServiceUnit.mark))
        let removed = try await home.tow("service", "remove")
        #expect(removed.status == 1)
        #expect(home.unitText == "")
    }

    @Test func withoutSystemdNothingIsWritten() async throws {
        let home = try Home(control: nil)
        let result = try await home.tow("service", "install")
        #expect(result.status == 1)
        #expect(result.stderr.contains("systemd is not available"))
        #expect(home.unitText == "")
    }

    @Test func aUnitOfSomebodyElseStays() async throws {
        let home = try Home()
        try FileManager.default.createDirectory(
            at: home.unit.deletingLastPathComponent(), withIntermediateDirectories: true)
        try Data("[Service]\nExecStart=/bin/true\n".utf8).write(to: home.unit)
        for verb in ["install", "remove"] {
            let result = try await home.tow("service", verb)
            #expect(result.status == 7)
            #expect(result.stderr.contains("was not written by 'tow service install'"))
        }
        #expect(home.unitText == "[Service]\nExecStart=/bin/true\n")
    }

    @Test func wordsReachTheProgramAsTheyAre() {
        #expect(ServiceUnit.word("/a b") == "\"/a b\"")
        #expect(ServiceUnit.word("100%h") == "\"100%%h\"")
        #expect(ServiceUnit.word("$HOME") == "\"$$HOME\"")
        #expect(ServiceUnit.word("a\"b\\c") == "\"a\\\"b\\\\c\"")
        #expect(ServiceUnit.word("a\nExecStart=/bin/sh") == "\"a\\nExecStart=/bin/sh\"")
    }

    private static let analyzer = "/usr/bin/systemd-analyze"
    private static let hasAnalyzer = FileManager.default.isExecutableFile(atPath: analyzer)

    /// If systemd is installed, it reads the unit itself.
    @Test(.enabled(if: ServiceUnitTests.hasAnalyzer, "systemd-analyze is not installed"), arguments: [true, false])
    func systemdUnderstandsTheUnit(_ usesNamespaces: Bool) async throws {
        let analysis = try await analyze(["--user", "--man=no", "verify"], usesNamespaces: usesNamespaces)
        #expect(analysis.status == 0)
        #expect(analysis.text == "")
    }

    /// The exposure that systemd computes is at most 2.0 of 10; `--threshold` counts tenths.
    @Test(.enabled(if: ServiceUnitTests.hasAnalyzer, "systemd-analyze is not installed"))
    func theUnitLeavesLittleExposed() async throws {
        let words = ["security", "--offline=yes", "--no-pager", "--threshold=20"]
        let analysis = try await analyze(words, usesNamespaces: true)
        #expect(analysis.status == 0, "\(analysis.text)")
        #expect(analysis.text.contains("Overall exposure level for towd.service"), "\(analysis.text)")
    }

    private func analyze(_ words: [String], usesNamespaces: Bool) async throws -> (status: Int32, text: String) {
        let directory = try TestDirectory()
        let kind = usesNamespaces ? [] : ["--no-namespaces"]
        let unit = try await CommandRun.run(["service", "install", "--print", "--downloads", "/a b%\"$x"] + kind)
        #expect(unit.status == 0)
        try unit.stdout.write(to: directory.file("towd.service"))
        let result = try await CommandRun(
            words + [directory.path("towd.service")],
            environment: ["HOME": directory.url.path, "XDG_RUNTIME_DIR": directory.url.path],
            program: URL(fileURLWithPath: Self.analyzer)
        ).finish()
        return (result.status, result.text + result.stderr)
    }
}
