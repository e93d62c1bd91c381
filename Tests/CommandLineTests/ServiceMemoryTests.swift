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
        #expect(try !read("/proc/\(process)/exe"))
        let limits = try String(contentsOfFile: "/proc/\(process)/limits", encoding: .utf8)
        let core = try #require(limits.split(separator: "\n").first { $0.hasPrefix("Max core file size") })
        #expect(core.split(separator: " ").dropFirst(4).first == "0", "\(core)")
        service.kill()
    }

    /// Shows that the check can fail.
    @Test func anOrdinaryProcessIsOpen() throws {
        let process = Process()
        let words = Self.unprivileged + ["/bin/sleep", "60"]
        process.executableURL = URL(fileURLWithPath: words[0])
        process.arguments = Array(words.dropFirst())
        try process.run()
        defer { process.terminate() }
        #expect(try read("/proc/\(process.processIdentifier)/exe"))
    }

    /// Returns true if another process of this user may see the link. This takes the right to trace the target.
    private func read(_ link: String) throws -> Bool {
        let process = Process()
        let words = Self.unprivileged + ["/bin/readlink", link]
        process.executableURL = URL(fileURLWithPath: words[0])
        process.arguments = Array(words.dropFirst())
        process.standardOutput = FileHandle.nullDevice
        process.standardError = FileHandle.nullDevice
        try process.run()
        process.waitUntilExit()
        return process.terminationStatus == 0
    }
}
