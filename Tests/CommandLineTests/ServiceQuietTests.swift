import FaultServer
import Foundation
import Testing

/// What the service writes where a user or the journal reads it.
struct ServiceQuietTests {
    /// Most users have no privileges; for root the one that raises a thread's priority is taken away.
    @Test(.timeLimit(.minutes(2))) func aServiceWithoutPrivilegesAsksForNone() async throws {
        let server = try await FaultServer.start(["/data.bin": Resource(length: 3 << 20, seed: 7)])
        let directory = try TestDirectory()
        let log = directory.file("errors")
        try Data().write(to: log)
        // What libdispatch has to say goes to the system's log, which for a unit is the journal; here it can be read.
        let spoken = ["/usr/bin/env", "LIBDISPATCH_LOG=stderr"]
        let prefix = spoken + (geteuid() == 0 ? ["/usr/bin/setpriv", "--bounding-set", "-sys_nice"] : [])
        let service = try ServiceProcess(directory, prefix: prefix, errors: try FileHandle(forWritingTo: log))
        // Adding would start one that is not there yet; asking waits for it.
        #expect(try await service.tow(["list"]).status == 0)
        let added = try await service.tow(["add", server.url("/data.bin")])
        #expect(added.status == 0, "\(added.stderr)")
        #expect(try await service.tow(["list"]).status == 0)
        service.kill()
        let lines = try String(contentsOf: log, encoding: .utf8).split(separator: "\n")
        // libdispatch asks for one thread of its own, whatever a program does; none of ours asks for more than others.
        #expect(lines.count { $0.contains("thread priority") } <= 1, "\(lines)")
        #expect(lines.contains { $0.hasPrefix("towd: listening") })
        await server.stop()
    }
}
