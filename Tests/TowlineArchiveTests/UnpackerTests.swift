import Foundation
import Testing
import TowlineCore

@testable import TowlineArchive

@Suite("Unpacking common archives", .timeLimit(.minutes(3)))
struct UnpackerTests {
    private static let kinds = [
        "tar": "tar cf", "tar.gz": "tar czf", "tar.xz": "tar cJf", "tar.zst": "tar --zstd -cf", "zip": "zip -qry",
    ]

    private static let tree = """
        mkdir -p tree/a/b/c/d/e tree/empty tree/.hidden
        echo one > tree/one; echo deep > tree/a/b/c/d/e/deep; echo dot > tree/.hidden/.file
        printf 'déjà vu' > 'tree/Übergröße ✓ 日本語.txt'; echo run > tree/run; chmod 755 tree/run
        head -c 3000000 /dev/urandom > tree/random
        long=$(printf 'n%.0s' $(seq 1 250)); echo long > tree/$long
        mkdir -p tree/$long.d/$long/$long/$long; echo far > tree/$long.d/$long/$long/$long/$long
        ln -s a/b tree/link; ln -s ../../one tree/a/b/up; touch -d @1234567890 tree/one

        """

    @Test("every format is unpacked correctly", arguments: Self.kinds.keys.sorted())
    func roundTrip(kind: String) async throws {
        let workshop = try Workshop()
        let program = try #require(Self.kinds[kind])
        try await workshop.shell(Self.tree + "cd tree; \(program) ../it.\(kind) .")
        let result = try await workshop.unpack("it.\(kind)")
        try await workshop.shell("diff -r --no-dereference tree out/it")
        #expect(workshop.names(workshop.out) == ["it"])
        #expect(result.path == workshop.out + "/it")
        #expect(result.bytes > 3_000_000)
        #expect(workshop.status("run").map { $0.st_mode & 0o100 } == 0o100)
        #expect(workshop.status("one").map { $0.st_mode & 0o111 } == 0)
        #expect(workshop.status("one")?.st_mtim.tv_sec == 1_234_567_890)
        #expect(workshop.text("a/b/up") == "one\n")
    }

    @Test("the directory has the mode of a new directory with the umask")
    func permissions() async throws {
        let workshop = try Workshop()
        try await workshop.shell("mkdir plain; echo x > x; tar cf it.tar x")
        try await workshop.unpack("it.tar")
        var plain = stat()
        #expect(stat(workshop.file("plain"), &plain) == 0)
        #expect(workshop.status("").map { $0.st_mode } == plain.st_mode)
    }

    @Test(
        "hard links within the archive, sparse files, and names in the GNU tar, pax and ustar formats",
        arguments: [
            "gnu", "pax", "ustar", "oldgnu",
        ])
    func tarDialects(format: String) async throws {
        let workshop = try Workshop()
        try await workshop.shell(
            """
            mkdir -p tree/sub; echo one > tree/one; ln tree/one tree/sub/same
            echo ü > tree/ü
            sparse=
            if [ \(format) != ustar ]; then
                sparse=-S; truncate -s 5M tree/holes; printf end >> tree/holes; truncate -s 9M tree/holes
            fi
            cd tree; tar $sparse --format=\(format) -cf ../it.tar .
            """)
        try await workshop.unpack("it.tar")
        try await workshop.shell("diff -r tree out/it")
        #expect(workshop.status("one")?.st_ino == workshop.status("sub/same")?.st_ino)
    }

    @Test("names that are not UTF-8 stay different, and control characters are replaced")
    func awkwardNames() async throws {
        let workshop = try Workshop()
        try await workshop.python(
            """
            with tarfile.open(path, "w", encoding="latin-1", format=tarfile.GNU_FORMAT) as tar:
                data(tar, "caf\\u00e9"); data(tar, "caf\\u00e8"); data(tar, "a\\x1b[31mb"); data(tar, "back\\\\slash")
                data(tar, "./dot/./file"); data(tar, "x" * 300 + ".txt")
            """)
        try await workshop.unpack("it.tar")
        let names = workshop.names(workshop.out + "/it")
        #expect(names.contains("café") && names.contains("cafè"))
        #expect(names.contains("a_[31mb") && names.contains("back_slash"))
        #expect(names.contains(String(repeating: "x", count: 251) + ".txt"))
        #expect(workshop.text("dot/file") == "x")
    }

    @Test("names with the same characters but different bytes are different names")
    func otherBytes() async throws {
        let workshop = try Workshop()
        try await workshop.python(
            """
            with tarfile.open(path, "w", format=tarfile.GNU_FORMAT) as tar:
                data(tar, "\\u00e9/x", b"one"); data(tar, "e\\u0301/x", b"other"); data(tar, "\\u00e9/y")
            """)
        try await workshop.unpack("it.tar")
        #expect(workshop.text("\u{E9}/x") == "one")
        #expect(workshop.text("e\u{301}/x") == "other")
        #expect(workshop.names(workshop.out + "/it").map { Array($0.utf8) } == [[0x65, 0xCC, 0x81], [0xC3, 0xA9]])
    }

    @Test("an empty archive results in an empty directory")
    func empty() async throws {
        for make in [
            "tar czf it -T /dev/null", "tar cf it -T /dev/null",
            "python3 -c 'import zipfile; zipfile.ZipFile(\"it\",\"w\").close()'",
        ] {
            let workshop = try Workshop()
            try await workshop.shell(make)
            let result = try await workshop.unpack("it")
            #expect(result.entries == 0)
            #expect(workshop.names(workshop.out) == ["it"])
            #expect(workshop.names(workshop.out + "/it") == [])
        }
    }

    @Test("setuid, setgid and sticky bits are ignored")
    func modeBits() async throws {
        let workshop = try Workshop()
        try await workshop.python(
            """
            with tarfile.open(path, "w") as tar:
                data(tar, "tool", mode=0o7755); tar.addfile(entry("dir", tarfile.DIRTYPE, mode=0o7777))
            """)
        try await workshop.unpack("it.tar")
        #expect(workshop.status("tool").map { $0.st_mode & 0o7100 } == 0o100)
        #expect(workshop.status("dir").map { $0.st_mode & 0o7700 } == 0o700)
    }

    // MARK: The directory

    @Test("an existing directory is not changed")
    func occupied() async throws {
        let workshop = try Workshop()
        try await workshop.shell("mkdir out/it; echo mine > out/it/one; echo theirs > one; tar cf it.tar one")
        await #expect { try await workshop.unpack("it.tar") } throws: {
            ($0 as? TowlineError)?.code == .destinationExists
        }
        #expect(workshop.text("one") == "mine\n")
        #expect(workshop.names(workshop.out) == ["it"])
    }

    /// Older versions left directories without the dot.
    @Test("leftovers of a crash are deleted; other directories are kept", arguments: ["", "."])
    func leftovers(dot: String) async throws {
        let workshop = try Workshop()
        let left = "out/\(dot)it.unpacking"
        try await workshop.shell(
            """
            mkdir -p \(left)-1/content/sub \(left)-2 \(left)-3
            echo half > \(left)-1/content/sub/half
            ln -s /etc \(left)-1/content/etc; touch \(left)-1/.towline-unpacking
            echo mine > \(left)-2/mine; echo x > x; tar cf it.tar x
            """)
        try await workshop.unpack("it.tar")
        #expect(workshop.names(workshop.out) == ["\(dot)it.unpacking-2", "it"].sorted())
        #expect(workshop.names(workshop.out + "/it") == ["x"])
    }

    /// Media servers watch the parent directory and read each file that appears there.
    @Test("incomplete files are in a hidden directory only", arguments: ["it", ".it", "film.mkv", "a.tar.gz"])
    func hidden(name: String) throws {
        let workshop = try Workshop()
        let folder = try workshop.stagingFolder(for: name)
        #expect(workshop.names(workshop.out).allSatisfy { $0.hasPrefix(".") && $0.hasSuffix(".unpacking-1") })
        try folder.publish(as: name, durable: false)
        withExtendedLifetime(folder) {}
    }

    @Test("a parent directory that is replaced by a link has no effect")
    func replacedParent() async throws {
        let workshop = try Workshop()
        try await workshop.shell("mkdir elsewhere; echo x > x; tar cf it.tar x")
        let parent = open(workshop.out, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        defer { close(parent) }
        try await workshop.shell("mv out before; ln -s elsewhere out")
        try await workshop.unpack("it.tar", in: parent)
        #expect(workshop.names(workshop.file("before")) == ["it"])
        #expect(workshop.names(workshop.file("elsewhere")) == [])
    }

    @Test("leftovers of a crash after a complete result are deleted")
    func leftoverOfAResult() async throws {
        let workshop = try Workshop()
        try await workshop.shell(
            """
            mkdir -p out/it out/it.unpacking-1; echo x | tee out/it/x x; touch out/it.unpacking-1/.towline-unpacking
            tar cf it.tar x
            """)
        await #expect { try await workshop.unpack("it.tar") } throws: {
            ($0 as? TowlineError)?.code == .destinationExists
        }
        #expect(workshop.names(workshop.out) == ["it"])
    }

    @Test("the mode of the directory follows the umask after unpacking")
    func rights() async throws {
        let workshop = try Workshop()
        try await workshop.shell("mkdir plain; echo x > x; tar cf it.tar x")
        try await workshop.unpack("it.tar")
        #expect(workshop.names(workshop.out) == ["it"])
        let plain = try FileManager.default.attributesOfItem(atPath: workshop.file("plain"))
        let made = try FileManager.default.attributesOfItem(atPath: workshop.out + "/it")
        #expect(made[.posixPermissions] as? Int == plain[.posixPermissions] as? Int)
    }

    @Test("a cancelled task leaves no files")
    func cancelled() async throws {
        let workshop = try Workshop()
        try await workshop.shell("head -c 3000000 /dev/zero > zeros; tar cf it.tar zeros")
        let task = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            return try await workshop.unpack("it.tar")
        }
        await #expect { try await task.value } throws: { ($0 as? TowlineError)?.code == .cancelled }
        #expect(workshop.names(workshop.out) == [])
    }
}
