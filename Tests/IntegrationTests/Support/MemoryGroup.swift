import Foundation
import Testing

/// A control group with little memory (`cgroups(7)`), and the words that run a program in it. The test fails if no
/// group can be created.
final class MemoryGroup: Sendable {
    private let path: String
    private let isUnified: Bool

    private init(megabytes: Int) throws {
        let lines = try String(contentsOfFile: "/proc/self/cgroup", encoding: .utf8).split(separator: "\n")
        let mark = "tow-" + String(UInt32.random(in: 0...(.max)), radix: 36)
        let own = lines.first { $0.contains(":memory:") }
        isUnified = own == nil
        // The second version allows groups with a limit only below groups without a process of their own.
        let root = isUnified ? "/sys/fs/cgroup" : "/sys/fs/cgroup/memory"
        path = "\(root)/\(mark)"
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
        let limit = isUnified ? "memory.max" : "memory.limit_in_bytes"
        try Self.write(String(megabytes << 20), to: "\(path)/\(limit)")
    }

    static func with(megabytes: Int, _ body: (MemoryGroup) async throws -> Void) async throws {
        let group = try MemoryGroup(megabytes: megabytes)
        defer { rmdir(group.path) }
        try await body(group)
    }

    /// The words that run a command in the group if they precede it.
    var prefix: [String] { ["/bin/bash", "-c", "echo $$ > \(path)/cgroup.procs && exec \"$@\"", "bash"] }

    /// The maximum number of bytes that the group has used.
    var peak: Int {
        let name = isUnified ? "memory.peak" : "memory.max_usage_in_bytes"
        let text = (try? String(contentsOfFile: "\(path)/\(name)", encoding: .utf8)) ?? ""
        return Int(text.trimmingCharacters(in: .whitespacesAndNewlines)) ?? 0
    }

    /// Writes without truncation or a new name: these are not regular files.
    private static func write(_ text: String, to path: String) throws {
        let descriptor = open(path, O_WRONLY)
        try #require(descriptor >= 0, "\(path): \(String(cString: strerror(errno)))")
        defer { close(descriptor) }
        let count = Array(text.utf8).withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
        try #require(count == text.utf8.count, "\(path): \(String(cString: strerror(errno)))")
    }
}
