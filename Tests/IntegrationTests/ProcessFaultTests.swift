import FaultServer
import Foundation
import Testing
import TowlineCore
import TowlineDisk
import TowlineEngine

/// Catalogue C and 69: signals, limits, restarts. The crash tests cover kills at every system call and power loss (rows
/// 72, 73, 75, 76, 82).
@Suite(.serialized, .timeLimit(.minutes(4)))
struct ProcessFaultTests {
    /// Row 74: the first signal ends the command soon, without loss.
    @Test(arguments: [(SIGINT, 130), (SIGTERM, 143)] as [(Int32, Int32)]) func row74SignalKeepsEverything(
        _ signal: Int32, _ status: Int32
    ) async throws {
        try await Site.with(try await Site(Resource(length: 8_000_000, rate: 2_000_000))) { site in
            let run = try ChildRun(site.command(["-x", "2"]), directory: site.scratch.path)
            await site.server.log.wait { $0.bodyBytesServed(Site.path) > 3_000_000 }
            let clock = ContinuousClock()
            let start = clock.now
            run.signal(signal)
            let result = try await run.finish()
            #expect(clock.now - start < .seconds(10))
            try site.law(result, status: status)
            let before = site.served
            try site.law(try await site.tow(), status: 0)
            // Every byte that was served counts, except those in socket buffers.
            #expect(site.served - before < 8_000_000 - 2_000_000)
        }
    }

    /// Row 72 in short (the crash tests cover every call): SIGKILL costs at most 256 KiB and the bytes in socket
    /// buffers.
    @Test func row72KillCostsLittle() async throws {
        try await Site.with(try await Site(Resource(length: 8_000_000, rate: 2_000_000))) { site in
            let run = try ChildRun(site.command(["-x", "1"]), directory: site.scratch.path)
            await site.server.log.wait { $0.bodyBytesServed(Site.path) > 3_000_000 }
            run.signal(SIGKILL)
            _ = try await run.finish()
            #expect(!site.hasFile)
            let before = site.served
            try site.law(try await site.tow(), status: 0)
            #expect(site.served - before < 8_000_000 - 2_000_000)
        }
    }

    /// Row 77: only one process writes; the second reports the process ID of the first.
    @Test func row77SecondProcess() async throws {
        let gate = Gate()
        try await Site.with(try await Site(.first(1, .wait(after: 2_000_000, for: gate)))) { site in
            // The test uses one connection: on a slow machine another would be added, and cut the response that the
            // first holds.
            let first = try ChildRun(
                site.command(["-x", "1", "--stall-timeout", "60"]), directory: site.scratch.path)
            await site.server.log.wait { $0.bodyBytesServed(Site.path) >= 2_000_000 }
            let second = try await site.tow()
            #expect(second.status == 9, "\(second.stderr)")
            #expect(second.stderr.contains(String(first.identifier)), "\(second.stderr)")
            gate.open()
            try site.law(try await first.finish(), status: 0)
        }
    }

    /// Row 80: few descriptors, perhaps too few for a second connection: the file arrives, or an error states the
    /// cause.
    @Test(arguments: [16, 20, 32]) func row80FewDescriptors(_ limit: Int) async throws {
        try await Site.with(try await Site(length: 6_000_000)) { site in
            let limited = ["/bin/bash", "-c", "ulimit -n \(limit); exec \"$@\"", "bash"]
            let result = try await site.tow(["-x", "16"], prefix: limited)
            try site.law(result)
            if result.status != 0 {
                #expect(result.stderr.contains("tow"), "\(result.stderr)")
                try site.law(try await site.tow(), status: 0)
            }
        }
    }

    /// Row 80: the runtime ends a process without a free descriptor for its timers. `tow get` does not use these
    /// timers, not even before the next attempt.
    @Test(.enabled(if: DiskFaultTests.canTrace)) func row80NoTimerOfTheRuntime() async throws {
        try await Site.with(try await Site(.first(2, .closeBeforeHead))) { site in
            let log = site.scratch.file("calls")
            let strace = ["/usr/bin/strace", "-f", "-qq", "-o", log, "-e", "trace=timerfd_create,connect"]
            try site.law(try await site.tow(["-x", "4"], prefix: strace), status: 0)
            let calls = site.scratch.read("calls")
            #expect(calls.contains("AF_INET") && !calls.contains("timerfd_create"), "\(calls)")
        }
    }

    /// `true` if root can run a program as a user without other processes.
    private static let canLimitProcesses =
        geteuid() == 0 && Thoroughness.areThere("/usr/bin/setpriv", "/usr/bin/prlimit")

    /// Row 80: a limit on the threads of the user, the first thread included. With one thread the error comes at once.
    @Test(.enabled(if: canLimitProcesses), arguments: [1, 2, 3, 4], ["127.0.0.1", "localhost"])
    func row80FewThreads(_ limit: Int, _ host: String) async throws {
        // Each case has a user of its own.
        let user = 60_000 + limit * 2 + (host == "localhost" ? 1 : 0)
        try await Site.with(try await Site(length: 3_000_000)) { site in
            let program = site.scratch.file("program")
            try FileManager.default.copyItem(atPath: ChildRun.tow, toPath: program)
            for name in [program, site.scratch.path] {
                try FileManager.default.setAttributes([.posixPermissions: 0o777], ofItemAtPath: name)
            }
            let url = "http://\(host):\(site.server.port)\(Site.path)"
            let command =
                ["/usr/bin/prlimit", "--nproc=\(limit)", "/usr/bin/setpriv", "--reuid", "\(user)", "--clear-groups"]
                + [program, "get", "-o", "few", url]
            let result = try await ChildRun.run(command, directory: site.scratch.path)
            #expect((result.status == 0) == (limit > 1), "\(result.stderr)")
            if limit == 1 {
                #expect(result.status == 3 && result.stderr.contains("ulimit -u"), "\(result.stderr)")
            } else {
                let content = Version(length: 3_000_000).content
                #expect(try content.firstMismatch(inFile: site.scratch.file("few"), length: 3_000_000) == nil)
            }
        }
    }

    /// Row 81: no reader for the command's output.
    @Test(arguments: ["exec \"$@\" >&- 2>&-", "exec \"$@\" >/dev/full 2>/dev/full", "\"$@\" 2>&1 | true"])
    func row81NobodyReads(_ line: String) async throws {
        try await Site.with(try await Site()) { site in
            _ = try await site.tow(prefix: ["/bin/bash", "-c", "set -o pipefail; " + line, "bash"])
            #expect(try site.published([Version(length: 3_000_000)]) != nil, "\(site.scratch.names)")
        }
    }

    /// Row 81: the terminal closes: everything is kept.
    @Test func row81HangUp() async throws {
        try await Site.with(try await Site(Resource(length: 8_000_000, rate: 2_000_000))) { site in
            let run = try ChildRun(site.command(), directory: site.scratch.path)
            await site.server.log.wait { $0.bodyBytesServed(Site.path) > 3_000_000 }
            run.signal(SIGHUP)
            let result = try await run.finish()
            try site.law(result)
            let before = site.served
            if result.status != 0 {
                try site.law(try await site.tow(), status: 0)
                #expect(site.served - before < 8_000_000 - 2_000_000)
            }
        }
    }

    /// Row 69: the process is stopped for longer than the stall timeout, then continued.
    @Test func row69StoppedAndContinued() async throws {
        try await Site.with(try await Site(Resource(length: 8_000_000, rate: 3_000_000))) { site in
            let run = try ChildRun(
                site.command(["-x", "2", "--stall-timeout", "2"]), directory: site.scratch.path)
            await site.server.log.wait { $0.bodyBytesServed(Site.path) > 1_000_000 }
            run.signal(SIGSTOP)
            try await Task.sleep(for: .seconds(4))
            run.signal(SIGCONT)
            try site.law(try await run.finish(), status: 0)
        }
    }

    /// Row 69 for another program: the reader of standard output pauses for longer than the stall timeout, then
    /// continues.
    @Test func row69TheReaderPauses() async throws {
        try await Site.with(try await Site(length: 8_000_000)) { site in
            let pipe = """
                set -o pipefail
                "$0" get -q -o - --stall-timeout 1 "$1" | { sleep 4; cat >out; }
                """
            let command = ["/bin/bash", "-c", pipe, ChildRun.tow, site.server.url(Site.path)]
            let result = try await ChildRun.run(command, directory: site.scratch.path)
            #expect(result.status == 0, "\(result.stderr)")
            #expect(try site.published([Version(length: 8_000_000)], name: "out") != nil)
        }
    }

    /// Row 83: after a power loss only durable marks count; under the same boot written ones do.
    @Test(arguments: [false, true]) func row83OtherBoot(isOther: Bool) async throws {
        try await Site.with(try await Site()) { site in
            let first = BootIdentity(high: 1, low: 2)
            // No file is synced: `durable` is off.
            try await site.interrupt(after: Scenario.held, storage: FileStorage(boot: first)) { $0.durable = false }
            let second = isOther ? BootIdentity(high: 3, low: 4) : first
            let before = site.served
            try site.expectFile(try await site.download(storage: FileStorage(boot: second)))
            let fetched = site.served - before
            if isOther {
                #expect(fetched >= site.length)
            } else {
                #expect(fetched < 2_000_000)
            }
        }
    }

    /// Row 83, after an orderly stop: the stop makes all received bytes durable, so the reboot costs none.
    @Test func row83OtherBootAfterAStop() async throws {
        try await Site.with(try await Site()) { site in
            try await site.interrupt(after: Scenario.held, storage: FileStorage(boot: BootIdentity(high: 1, low: 2)))
            let before = site.served
            let second = FileStorage(boot: BootIdentity(high: 3, low: 4))
            try site.expectFile(try await site.download(storage: second))
            #expect(site.served - before < site.length - Scenario.held + 500_000)
        }
    }

    /// Row 83, where the run before the reboot received no bytes: it makes the bytes that it found durable.
    @Test func row83OtherBootAfterARunThatBroughtNothing() async throws {
        try await Site.with(try await Site()) { site in
            let first = FileStorage(boot: BootIdentity(high: 1, low: 2))
            try await site.interrupt(after: Scenario.held, storage: first) { $0.durable = false }
            site.server.set(.always(.resetBeforeHead), for: Site.path)
            let idle = Download(try site.options { $0.maximumTries = 1 }, storage: first)
            #expect(await idle.run().code == .transient)
            site.server.set(.correct, for: Site.path)
            let before = site.served
            let second = FileStorage(boot: BootIdentity(high: 3, low: 4))
            try site.expectFile(try await site.download(storage: second))
            #expect(site.served - before < site.length - Scenario.held + 500_000)
        }
    }

    /// Stops a download on a disk whose syncs take seconds. `discard` waits for no sync; `pause` waits for all bytes,
    /// so that the place is free afterwards; `close` waits only for a limited time. A list is stopped only at the end
    /// of the process.
    @Test(arguments: Download.isBatch ? [StopPurpose.close] : [.discard, .pause, .close])
    func stopOnASlowDisk(_ purpose: StopPurpose) async throws {
        var isInTime = false
        for _ in 0..<5 where !isInTime { isInTime = try await stopsOnASlowDisk(purpose) }
        #expect(isInTime, "never stopped within its first second")
    }

    /// Returns `false` if a busy machine was so late that a regular checkpoint came before the stop: the test
    /// is inconclusive.
    private func stopsOnASlowDisk(_ purpose: StopPurpose) async throws -> Bool {
        var isInTime = true
        try await Site.with(try await Site()) { site in
            let storage = SlowStorage(.seconds(3))
            var start = ContinuousClock.now
            try await site.interrupt(
                after: 200_000, storage: storage, for: purpose,
                onStop: {
                    // A checkpoint that is due has begun with the last notification.
                    try await Task.sleep(for: .milliseconds(20))
                    isInTime = storage.checkpoints == 0
                    start = .now
                })
            guard isInTime else { return }
            let time = ContinuousClock.now - start
            #expect(storage.checkpoints == (purpose == .discard ? 0 : 1))
            switch purpose {
            case .discard: #expect(time < .seconds(2))
            case .pause:
                #expect(time > .seconds(3))
                let place = Place(directory: site.scratch.path, name: Site.name)
                guard case .unfinished(let part) = try FileStorage().survey(place) else {
                    Issue.record("nothing is there")
                    return
                }
                #expect(part.journal?.durable.count == 200_000)
                part.sink.close()
            case .close: #expect(time < .seconds(2))
            }
        }
        return isInTime
    }

    /// Row 79: 64 MB for the program and the pages of its files: the process neither grows nor is killed.
    @Test(arguments: [1, 16]) func row79LittleMemory(connections: Int) async throws {
        try await MemoryGroup.with(megabytes: 64) { group in
            try await Site.with(try await Site(length: 200_000_000)) { site in
                let result = try await site.tow(["-x", "\(connections)"], prefix: group.prefix)
                try site.law(result, status: 0)
                #expect(group.peak > 1 << 20, "the program was in the group")
            }
        }
    }
}
