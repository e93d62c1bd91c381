import Foundation
import Testing
import TowlineDisk

/// `--version -v` reports limits that the kernel has just enforced, not limits that the program knows.
@Suite(.timeLimit(.minutes(2))) struct VersionLimitsTests {
    private func report(_ program: String, without call: String? = nil) async throws -> String {
        let path = CommandRun.products.appendingPathComponent(program).path
        // The kernel returns an error for each use of the call.
        let before = call.map { ["-f", "-o", "/dev/null", "-e", "inject=\($0):error=EINVAL", path] } ?? []
        let result = try await CommandRun(
            before + ["--version", "-v"], program: URL(fileURLWithPath: call == nil ? path : "/usr/bin/strace")
        ).finish()
        #expect(result.status == 0, "\(result.stderr)")
        return result.text
    }

    @Test func enforcedLimitsAreReported() async throws {
        let landlock = Confinement.version.map { "(Landlock \($0))" } ?? "this kernel does not support Landlock"
        #expect(try await report("tow").contains(landlock))
        let lines = try await report("towd")
        #expect(lines.contains(landlock) && lines.hasSuffix("\nno core dumps\n"), "\(lines)")
        let status = try String(contentsOfFile: "/proc/self/status", encoding: .utf8)
        let hasSeccomp = lines.contains("\na process without files and network reads archives (seccomp)\n")
        #expect(hasSeccomp == status.contains("Seccomp:"), "\(lines)")
    }

    /// Without `prctl`, there is no filter of system calls, no protection of the memory and no Landlock.
    @Test(.enabled(if: Confinement.version != nil, "this kernel does not support Landlock"))
    func missingLimitsAreReported() async throws {
        let absence = "this system does not allow Landlock"
        #expect(try await report("tow", without: "prctl").contains(absence))
        let lines = try await report("towd", without: "prctl")
        #expect(lines.contains(absence), "\(lines)")
        #expect(lines.contains("this kernel does not limit the system calls of the process that reads archives"))
        #expect(lines.contains("this system does not prevent core dumps of towd"))
        #expect(try await report("tow", without: "landlock_restrict_self").contains(absence))
        #expect(try await report("towd", without: "landlock_restrict_self").contains(absence))
    }
}
