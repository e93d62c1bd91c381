import Foundation
import Testing

/// The memory of the service, which holds the access token and credentials, is closed to others without privileges.
struct ServiceMemoryTests {
    /// Root has the privilege to read every process, unless it is taken away.
    private static let unprivileged = geteuid() == 0 ? ["/usr/bin/setpriv", "--bounding-set", "-sys_ptrace"] : []

    @Test(.timeLimit(.minutes(2))) func anotherProcessOfTheUserCannotReadIt() async throws {
        let directory = try TestDirectory()
        let service = try ServiceProcess(directory, prefix: Self.unprivileged)
        #expect(try await service.tow(["list"]).status == 0)
        let lock = try String(contentsOf: directory.file("state/registry.lock"), encoding: .utf8)
        let process = try #require(lock.split(separator: " ").first)
        #expect(try await !read("/proc/\(process)/exe"))
        let limits = try String(contentsOfFile: "/proc/\(process)/limits", encoding: .utf8)
        let core = try #require(limits.split(separator: "\n").first { $0.hasPrefix("Max core file size") })
        #expect(core.split(separator: " ").dropFirst(4).first == "0", "\(core)")
        service.kill()
    }

    /// Shows that the check can fail.
    @Test(.timeLimit(.minutes(1))) func anOrdinaryProcessIsOpen() async throws {
        let process = Process()
        let words = Self.unprivileged + ["/bin/sleep", "600"]
        process.executableURL = URL(fileURLWithPath: words[0])
        process.arguments = Array(words.dropFirst())
        // The process must not keep the output of the tests open.
        (process.standardOutput, process.standardError) = (FileHandle.nullDevice, FileHandle.nullDevice)
        try process.run()
        // The process inherits a signal mask that blocks SIGTERM.
        defer { kill(process.processIdentifier, SIGKILL) }
        // Before the process runs sleep(1), setpriv(1) has more privileges than the reader.
        try await eventually { try await read("/proc/\(process.processIdentifier)/exe") }
    }

    /// Returns `true` if another process of this user may read the link, which requires the right to trace the target.
    private func read(_ link: String) async throws -> Bool {
        let words = Self.unprivileged + ["/bin/readlink", link]
        return try await CommandRun(Array(words.dropFirst()), program: URL(fileURLWithPath: words[0])).finish().status
            == 0
    }
}
