import FaultServer
import Foundation
import Testing

/// Tests the lines that the service writes to standard error, where a user or the journal reads them.
struct ServiceQuietTests {
    /// Most users have no privileges; root loses the privilege to raise a thread's priority.
    @Test(.timeLimit(.minutes(2))) func aServiceWithoutPrivilegesAsksForNone() async throws {
        let server = try await FaultServer.start(["/data.bin": Resource(length: 3 << 20, seed: 7)])
        let directory = try TestDirectory()
        let log = directory.file("errors")
        try Data().write(to: log)
        // libdispatch logs to the system's log, which for a unit is the journal; here the test can read it.
        let spoken = ["/usr/bin/env", "LIBDISPATCH_LOG=stderr"]
        let prefix = spoken + (geteuid() == 0 ? ["/usr/bin/setpriv", "--bounding-set", "-sys_nice"] : [])
        let service = try ServiceProcess(directory, prefix: prefix, errors: try FileHandle(forWritingTo: log))
        // `add` would start a service that is not running yet; `list` waits for it.
        #expect(try await service.tow(["list"]).status == 0)
        let added = try await service.tow(["add", server.url("/data.bin")])
        #expect(added.status == 0, "\(added.stderr)")
        #expect(try await service.tow(["list"]).status == 0)
        service.kill()
        let lines = try String(contentsOf: log, encoding: .utf8).split(separator: "\n")
        // libdispatch asks for one thread of its own in any program; no thread of ours asks for a raised priority.
        #expect(lines.count { $0.contains("thread priority") } <= 1, "\(lines)")
        #expect(lines.contains { $0.hasPrefix("towd: listening") })
        await server.stop()
    }
}
