import FaultServer
import Foundation
import Testing

/// `tow watch` in a real terminal, with the real service.
@Suite(.serialized) struct WatchTerminalTests {
    private static let version = Version(seed: 7, length: 40_000_000)

    /// Starts a service that downloads slowly, and a terminal with `tow watch` that shows it.
    private func watch(
        _ count: Int, _ body: (ServiceProcess, PseudoTerminal) async throws -> Void
    ) async throws {
        var options = ServerOptions()
        options.sharedRate = 400_000
        let names = (0..<count).map { "f\($0).bin" }
        let server = try await FaultServer.start(
            Dictionary(uniqueKeysWithValues: names.map { ("/\($0)", Resource(Self.version)) }), options: options)
        let service = try ServiceProcess(try TestDirectory())
        // The service runs before `add`, so that `add` does not start one.
        #expect(try await service.tow(["list"]).status == 0)
        let added = try await service.tow(["add"] + names.map { server.url("/\($0)") })
        #expect(added.status == 0, "\(added.stderr)")
        let terminal = try PseudoTerminal(["watch"] + service.options)
        try await body(service, terminal)
        service.kill()
        await server.stop()
    }

    @Test func itShowsWhatHappensAndDoesWhatKeysSay() async throws {
        try await watch(3) { service, terminal in
            try await terminal.wait { $0[0].contains("3 in the list") && $0[1].hasPrefix("▸ f0.bin  downloading") }
            #expect(terminal.screen.count == 12)
            try await terminal.wait { $0[1].contains("MiB") && $0[1].contains("%") }
            terminal.press("\u{1B}[B")
            try await terminal.wait { $0[2].hasPrefix("▸ f1.bin") && $0[1].hasPrefix("  f0.bin") }
            terminal.press("p")
            try await terminal.wait { $0[2].hasPrefix("▸ f1.bin  paused") && $0[0].contains("1 paused") }
            let rows = try await service.tow(["list", "--json"]).objects
            #expect(rows.map { $0["state"] as? String }.filter { $0 == "paused" }.count == 1)
            terminal.press(" ")
            try await terminal.wait { !$0[2].contains("paused") && !$0[0].contains("paused") }

            terminal.press("x")
            try await terminal.wait { $0[11].hasPrefix("Remove f1.bin from the list?") }
            terminal.press("n")
            try await terminal.wait { $0[11].hasPrefix("q quit") }
            terminal.press("xy")
            try await terminal.wait { $0[0].contains("2 in the list") && $0[2].hasPrefix("▸ f2.bin") }
            terminal.press("cy")
            try await terminal.wait { $0[2].hasPrefix("▸ f2.bin  cancelled") }
            terminal.press("r")
            try await terminal.wait { !$0[2].contains("cancelled") && !$0[0].contains("cancelled") }

            terminal.resize(columns: 40, rows: 4)
            try await terminal.wait { $0.count == 4 && $0.allSatisfy { $0.count < 40 } }
            terminal.press("q")
            let end = try await terminal.end()
            #expect(end.status == 0)
            #expect(end.isRestored)
        }
    }

    @Test func itSaysWhenTheServiceStopsAndGoesOnWhenItIsThereAgain() async throws {
        try await watch(1) { service, terminal in
            try await terminal.wait { $0[0].contains("1 in the list") }
            service.kill()
            try await terminal.wait { $0[0].hasPrefix("towd is not running. Waiting for it") }
            terminal.press("p")
            try await terminal.wait { $0[11].hasPrefix("towd does not respond, so the download is unchanged") }
            try service.start()
            try await terminal.wait { $0[0].contains("1 in the list") && $0[11] == "towd is running again" }
            try await terminal.wait { $0[1].contains("downloading") }
            terminal.press("\u{3}")
            let end = try await terminal.end()
            #expect(end.status == 130)
            #expect(end.isRestored)
        }
    }

    /// `tow watch` waits for a service. Any signal that ends it leaves the terminal as it was.
    @Test(arguments: [SIGINT, SIGTERM, SIGHUP])
    func aSignalLeavesTheTerminalAsItWas(_ number: Int32) async throws {
        let directory = try TestDirectory()
        let terminal = try PseudoTerminal(["watch", "--state", directory.path("state")])
        try await terminal.wait { $0[0].hasPrefix("towd is not running.") }
        terminal.signal(number)
        let end = try await terminal.end()
        #expect(end.status == (number == SIGINT ? 130 : 143))
        #expect(end.isRestored)
    }

    @Test func itEndsWithItsWindow() async throws {
        let directory = try TestDirectory()
        let terminal = try PseudoTerminal(["watch", "--state", directory.path("state")])
        try await terminal.wait { $0[0].hasPrefix("towd is not running.") }
        terminal.close()
        #expect(try await terminal.end().status == 143)
    }

    /// Tests Ctrl-Z followed by `fg`. The terminal's signal does not stop a process group without a shell: then the
    /// program continues automatically.
    @Test func ctrlZGivesTheTerminalBackForAWhile() async throws {
        let directory = try TestDirectory()
        let terminal = try PseudoTerminal(["watch", "--state", directory.path("state")])
        try await terminal.wait { $0[0].hasPrefix("towd is not running.") }
        let start = terminal.text.utf8.count
        terminal.press("\u{1A}")
        try await terminal.wait { _ in terminal.text.utf8.dropFirst(start).contains { $0 == UInt8(ascii: "l") } }
        terminal.signal(SIGCONT)
        try await terminal.wait { _ in
            let rest = String(decoding: terminal.text.utf8.dropFirst(start), as: UTF8.self)
            return rest.contains("\u{1B}[?1049l") && rest.contains("\u{1B}[?1049h") && rest.contains("Waiting for it")
        }
        terminal.press("q")
        let end = try await terminal.end()
        #expect(end.status == 0)
        #expect(end.isRestored)
    }

    @Test func withoutATerminalItSaysWhatWorks() async throws {
        let result = try await CommandRun.run(["watch"])
        #expect(result.status == 2)
        #expect(result.stderr.contains("'tow list'"))
        #expect(result.text == "")
        let dumb = try PseudoTerminal(["watch"], environment: ["TERM": "dumb"])
        #expect(try await dumb.end().status == 2)
        #expect(dumb.text.contains("'tow list'"))
    }

    @Test func whatTheServiceDoesNotTakeIsSaidBeforeAnythingIsDrawn() async throws {
        let service = try ServiceProcess(try TestDirectory())
        #expect(try await service.tow(["list"]).status == 0)
        let terminal = try PseudoTerminal(["watch", "--group", "a\u{1}"] + service.options)
        #expect(try await terminal.end().status == 2)
        #expect(terminal.text.contains("group: the value is empty or contains control characters"))
        #expect(!terminal.text.contains("\u{1B}["))
    }
}
