import CUnpack
import Foundation
import Testing
import TowlineCore

@testable import TowlineArchive

/// Tests of the process that reads archives: its permissions, its memory limit, and its early end.
struct ConfinementTests {
    /// Small archives that need gigabytes of memory to read.
    private static let bombs: [(name: String, script: String)] = [
        (
            "a sparse map of millions of pieces",
            """
            def record(key, value):
                text = " %s=%s\\n" % (key, value)
                length = len(text) + 1
                while len(str(length)) + len(text) != length: length += 1
                return ("%d%s" % (length, text)).encode()
            facts = b"".join(record("GNU.sparse." + k, v) for k, v in
                (("major", "1"), ("minor", "0"), ("name", "s"), ("realsize", "1")))
            table = b"%d\\n" % 9_000_000 + b"0\\n0\\n" * 9_000_000
            table += bytes(-len(table) % 512)
            write(header("p", b"x", len(facts)) + facts + bytes(-len(facts) % 512), header("s", b"0", len(table)), table)
            """
        ),
        ("a pax header of 400 MB", #"write(header("p", b"x", 400_000_000), *[b"0" * 1_000_000] * 400)"#),
        ("a long name of 400 MB", #"write(header("p", b"L", 400_000_000), *[b"n" * 1_000_000] * 400)"#),
        ("a long link of 400 MB", #"write(header("p", b"K", 400_000_000), *[b"n" * 1_000_000] * 400)"#),
        (
            "a dictionary of 4 GiB (xz)",
            """
            import lzma
            data = bytearray(lzma.compress(header("f", b"0", 0) + bytes(1024)))
            size = (data[12] + 1) * 4
            data[12 + 4] = 40
            data[12 + size - 4:12 + size] = struct.pack("<I", zlib.crc32(bytes(data[12:12 + size - 4])))
            open(path, "wb").write(data)
            """
        ),
        (
            "a window of 2 GiB (zstd)",
            """
            import subprocess
            raw = subprocess.run(["zstd", "-q", "-c", "--no-content-size"], input=header("f", b"0", 0) + bytes(1024),
                capture_output=True, check=True).stdout
            open(path, "wb").write(raw[:5] + bytes([(31 - 10) << 3]) + raw[6:])
            """
        ),
        (
            "a name of 400 MB in an attribute of a global header",
            #"write(header("g", b"g", 400_000_000), *[b"400000000 path=" + b"n" * 1_000_000] * 400)"#
        ),
    ]

    private static let tools = """
        def header(name, kind, size):
            info = tarfile.TarInfo(name)
            info.type, info.size = kind, size
            return info.tobuf(tarfile.GNU_FORMAT)
        def write(*pieces):
            with gzip.open(path, "wb", 1) as out:
                for piece in pieces: out.write(piece)
                out.write(bytes(1024))

        """

    /// The memory of this process does not grow, and no files are unpacked.
    @Test(arguments: bombs.indices) func aBombIsRefused(_ index: Int) async throws {
        let bomb = Self.bombs[index]
        let workshop = try Workshop()
        try await workshop.python(Self.tools + bomb.script, "it")
        let size = try #require(
            try FileManager.default.attributesOfItem(atPath: workshop.file("it"))[.size] as? NSNumber)
        #expect(size.intValue < 3_000_000, "\(bomb.name)")
        let before = Self.residentMiB()
        do {
            let result = try await workshop.unpack("it")
            // libarchive itself handles some bombs, which leave only small files.
            #expect(result.bytes < 1000, "\(bomb.name)")
        } catch let error as TowlineError {
            #expect([.archiveRefused, .archiveDamaged].contains(error.code), "\(bomb.name): \(error)")
            #expect(workshop.names(workshop.out) == [], "\(bomb.name)")
        }
        #expect(Self.residentMiB() - before < 60, "\(bomb.name)")
    }

    private static func residentMiB() -> Int {
        let text = (try? String(contentsOfFile: "/proc/self/statm", encoding: .utf8)) ?? ""
        return (text.split(separator: " ").dropFirst().first.flatMap { Int($0) } ?? 0) * 4096 >> 20
    }

    /// The child has only its own descriptors, no environment, a system call filter and a memory limit.
    @Test(.enabled(if: geteuid() == 0, "only root can look at the child")) func theChildMayDoNothingElse() async throws
    {
        let workshop = try Workshop()
        try await workshop.shell("head -c 3000000 /dev/urandom > r; tar cf it.tar r")
        let archive = open(workshop.file("it.tar"), O_RDONLY | O_CLOEXEC)
        var output: Int32 = -1
        let process = towline_unpack_start(archive, 64 << 20, &output)
        close(archive)
        try #require(process > 0)
        defer {
            close(output)
            kill(process, SIGKILL)
            waitpid(process, nil, 0)
        }
        var frame = towline_unpack_frame()
        #expect(read(output, &frame, MemoryLayout.size(ofValue: frame)) == MemoryLayout.size(ofValue: frame))
        #expect(Int(frame.kind) == TOWLINE_UNPACK_HEAD)
        func facts(_ name: String) throws -> String {
            String(decoding: try Data(contentsOf: URL(fileURLWithPath: "/proc/\(process)/\(name)")), as: UTF8.self)
        }
        let status = try facts("status")
        #expect(status.contains("Seccomp:\t2\n") && status.contains("NoNewPrivs:\t1\n"), "\(status)")
        #expect(try facts("limits").contains("Max data size             67108864"))
        #expect(try facts("limits").contains("Max file size             0"))
        #expect(try facts("environ").isEmpty)
        let descriptors = try FileManager.default.contentsOfDirectory(atPath: "/proc/\(process)/fd")
        #expect(descriptors.sorted() == ["0", "1", "2", "3", "4"])
    }

    /// `towd --version -v` reports this. Seccomp is missing only in unusual kernels.
    @Test func theChildTestsItsLimits() throws {
        let status = try String(contentsOfFile: "/proc/self/status", encoding: .utf8)
        #expect(Unpacker.isConfined == status.contains("Seccomp:"))
    }

    /// The early end of a child is an error, and no files remain.
    @Test(.enabled(if: geteuid() == 0, "only root can look at the child"), .timeLimit(.minutes(1)))
    func aChildThatEndsEarlyIsAnError() async throws {
        let workshop = try Workshop()
        try await workshop.shell("head -c 400M /dev/zero > zeros; tar cf it.tar zeros; rm zeros")
        async let ending: Void = workshop.expect(.archiveDamaged, "process that reads it failed", of: "it.tar")
        var children: [pid_t] = []
        while children.isEmpty {
            try await Task.sleep(for: .milliseconds(1))
            children = try Self.children(reading: workshop.file("it.tar"))
        }
        for child in children { kill(child, SIGKILL) }
        await ending
    }

    /// Returns the processes that read an archive.
    private static func children(reading archive: String) throws -> [pid_t] {
        try FileManager.default.contentsOfDirectory(atPath: "/proc").compactMap { pid_t($0) }.filter { process in
            let path = "/proc/\(process)/"
            guard let words = try? Data(contentsOf: URL(fileURLWithPath: path + "cmdline")) else { return false }
            return words.starts(with: Data("towline-unpack-archive\0".utf8))
                && (try? FileManager.default.destinationOfSymbolicLink(atPath: path + "fd/3"))
                    == URL(fileURLWithPath: archive).standardizedFileURL.path
        }
    }
}
