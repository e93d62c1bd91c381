import Foundation
import Testing
import TowlineArchive
import TowlineCore

/// Tests of catalogue row 126, and of the threats to unpackers in the threats table.
@Suite("Malicious archives", .timeLimit(.minutes(3)))
struct HostileArchiveTests {
    private static let ways = [
        "../evil", "a/../../evil", "a/..", "/tmp/tow-evil", "C:\\evil", "C:evil", "..\\evil", "a\\..\\..\\evil",
        "\\evil",
        "./../evil", "..", "a/b/../../../evil",
    ]

    @Test("row 126: a path outside the directory", arguments: Self.ways, ["tar", "zip"])
    func row126Traversal(name: String, kind: String) async throws {
        let workshop = try Workshop()
        let quoted = name.replacingOccurrences(of: "\\", with: "\\\\")
        if kind == "tar" {
            try await workshop.python("with tarfile.open(path, 'w') as tar: data(tar, 'ok'); data(tar, '\(quoted)')")
        } else {
            try await workshop.python(
                """
                with zipfile.ZipFile(path, "w") as zip:
                    zip.writestr("ok", "x"); zip.writestr("\(quoted)", "x")
                """)
        }
        await workshop.expect(.archiveRefused, "", of: "it.tar")
        #expect(workshop.names(workshop.path) == ["it.tar", "out"])
    }

    @Test(
        "row 126: a symbolic link to a path outside the directory",
        arguments: [
            "tar.addfile(entry('l', tarfile.SYMTYPE, '/etc'))", "tar.addfile(entry('l', tarfile.SYMTYPE, '..'))",
            "tar.addfile(entry('a/b/l', tarfile.SYMTYPE, '../../../x'))",
            // The text of the second link is harmless, but not together with the first link.
            "tar.addfile(entry('d/e/b', tarfile.SYMTYPE, '../../t')); "
                + "tar.addfile(entry('a', tarfile.SYMTYPE, 'd/e/b/../../x'))",
            "tar.addfile(entry('l', tarfile.SYMTYPE, 'a/../../x'))",
            "tar.addfile(entry('l', tarfile.SYMTYPE, '/etc')); data(tar, 'l/evil')",
        ])
    func row126SymbolicLink(script: String) async throws {
        let workshop = try Workshop()
        try await workshop.python("with tarfile.open(path, 'w') as tar: \(script)")
        await workshop.expect(.archiveRefused, "points to", of: "it.tar")
    }

    @Test("row 126: a file through a link of the same archive")
    func row126WriteThroughLink() async throws {
        for script in [
            "tar.addfile(entry('l', tarfile.SYMTYPE, 'sub')); data(tar, 'l/file')",
            "data(tar, 'l/file'); tar.addfile(entry('l', tarfile.SYMTYPE, 'sub'))",
            "tar.addfile(entry('l', tarfile.SYMTYPE, 'sub')); data(tar, 'l')",
            "data(tar, 'l'); data(tar, 'l')", "data(tar, 'l'); data(tar, 'l/file')",
        ] {
            let workshop = try Workshop()
            try await workshop.python("with tarfile.open(path, 'w') as tar: \(script)")
            await workshop.expect(.archiveRefused, "", of: "it.tar")
        }
    }

    @Test("row 126: a link in a zip file")
    func row126LinkInZip() async throws {
        let workshop = try Workshop()
        try await workshop.shell("ln -s /etc l; zip -qy it.zip l")
        await workshop.expect(.archiveRefused, "points to \"/etc\"", of: "it.zip")
    }

    @Test(
        "row 126: a hard link to anything except a file of the archive",
        arguments: ["/etc/passwd", "../x", "none", "link", "dir"])
    func row126HardLink(target: String) async throws {
        let workshop = try Workshop()
        try await workshop.python(
            """
            with tarfile.open(path, "w") as tar:
                data(tar, "file"); tar.addfile(entry("link", tarfile.SYMTYPE, "file"))
                tar.addfile(entry("dir", tarfile.DIRTYPE, mode=0o755))
                tar.addfile(entry("hard", tarfile.LNKTYPE, "\(target)"))
            """)
        await workshop.expect(.archiveRefused, "", of: "it.tar")
    }

    @Test("row 126: devices and FIFOs", arguments: ["CHRTYPE", "BLKTYPE", "FIFOTYPE"])
    func row126Devices(type: String) async throws {
        let workshop = try Workshop()
        try await workshop.python(
            "with tarfile.open(path, 'w') as tar: data(tar, 'ok'); tar.addfile(entry('dev', tarfile.\(type)))")
        await workshop.expect(.archiveRefused, "device", of: "it.tar")
    }

    // MARK: Limits

    @Test("row 126: zeros that compress a thousandfold", arguments: ["gz", "xz", "zst", "zip"])
    func row126Ratio(kind: String) async throws {
        let workshop = try Workshop()
        if kind == "zip" {
            try await workshop.shell("truncate -s 150M zeros; zip -q it zeros; mv it.zip it; rm zeros")
        } else {
            let program = ["gz": "gzip -1", "xz": "xz -0", "zst": "zstd -q"][kind] ?? ""
            try await workshop.shell("truncate -s 150M zeros; tar c zeros | \(program) > it; rm zeros")
        }
        await workshop.expect(.archiveRefused, "200 times", of: "it")
    }

    /// The data of each entry contains the header of the next entry as a stored deflate block, and then its data. The
    /// entries overlap, and each one unpacks the same million zeros (Fifield, "A better zip bomb", 2019).
    @Test("row 126: a zip file whose entries overlap")
    func row126OverlappingZip() async throws {
        let workshop = try Workshop()
        try await workshop.python(
            """
            packer = zlib.compressobj(9, zlib.DEFLATED, -15)
            plain = b"\\0" * 1000000
            packed, files = packer.compress(plain) + packer.flush(), []
            for n in reversed(range(300)):
                name = b"%05d" % n
                sizes = struct.pack("<3I2H", zlib.crc32(plain), len(packed), len(plain), len(name), 0)
                header = struct.pack("<4s5H", b"PK\\3\\4", 20, 0, 8, 0, 33) + sizes + name
                files.append((name, sizes, len(header) + len(packed)))
                whole = header + packed
                packed = struct.pack("<BHH", 0, len(header), len(header) ^ 0xFFFF) + whole
                plain = header + plain
            directory = b""
            for name, sizes, end in reversed(files):
                directory += struct.pack("<4s6H", b"PK\\1\\2", 20, 20, 0, 8, 0, 33) + sizes
                directory += struct.pack("<3H2I", 0, 0, 0, 0, len(whole) - end) + name
            tail = struct.pack("<4s4H2IH", b"PK\\5\\6", 0, 0, 300, 300, len(directory), len(whole), 0)
            open(path, "wb").write(whole + directory + tail)
            """)
        await workshop.expect(.archiveRefused, "200 times", of: "it.tar")
        let result = try await workshop.unpack("it.tar") { $0.ratio = 100_000 }
        #expect(result.entries == 300 && result.bytes > 300_000_000)
    }

    @Test("row 126: a million entries")
    func row126Entries() async throws {
        let workshop = try Workshop()
        try await workshop.python(
            """
            base = bytearray(entry("f0000000").tobuf(tarfile.USTAR_FORMAT))
            total = int(base[148:154], 8)
            with gzip.open(path, "wb", 1) as out:
                for start in range(0, 1000000, 10000):
                    block = bytearray()
                    for n in range(start, start + 10000):
                        digits = b"%07d" % n
                        base[1:8] = digits
                        base[148:154] = b"%06o" % (total + sum(digits) - 7 * 48)
                        block += base
                    out.write(block)
                out.write(b"\\0" * 1024)
            """)
        await workshop.expect(.archiveRefused, "more than 20000 files", of: "it.tar") { $0.entries = 20_000 }
    }

    @Test("row 126: directories without an entry count, and their depth is limited")
    func row126Depth() async throws {
        let workshop = try Workshop()
        try await workshop.python(
            "with tarfile.open(path, 'w') as tar: data(tar, '/'.join(['d'] * 90)); data(tar, '/'.join(['e'] * 90))")
        await workshop.expect(.archiveRefused, "more than 150", of: "it.tar") { $0.entries = 150 }
        await workshop.expect(.archiveRefused, "more than 50 directories deep", of: "it.tar") { $0.depth = 50 }
        try await workshop.unpack("it.tar")
    }

    @Test("row 126: the total number of bytes is limited at any ratio, including holes of sparse files")
    func row126Bytes() async throws {
        let workshop = try Workshop()
        try await workshop.shell("head -c 3000000 /dev/urandom > r; tar cf it.tar r; rm r")
        await workshop.expect(.archiveRefused, "would exceed", of: "it.tar") { $0.bytes = 2_000_000 }
        try await workshop.shell("truncate -s 1T holes; printf x >> holes; tar -S -cf holes.tar holes; rm holes")
        await workshop.expect(.archiveRefused, "would exceed", of: "holes.tar")
    }

    /// Each entry has a header of a megabyte and no content.
    @Test("row 126: headers count as unpacked bytes")
    func row126Headers() async throws {
        let workshop = try Workshop()
        try await workshop.python(
            """
            def headers(count):
                for n in range(count):
                    info = entry("f%d" % n)
                    info.pax_headers = {"comment": "x" * 1000000}
                    yield info.tobuf(tarfile.PAX_FORMAT)
            for name, count in ("many", 100), ("few", 20):
                with gzip.open(name, "wb", 1) as out:
                    for header in headers(count): out.write(header)
                    out.write(bytes(1024))
            """)
        await workshop.expect(.archiveRefused, "200 times", of: "many")
        #expect(try await workshop.unpack("few").entries == 20)
    }

    /// Long work for each byte of the archive, with and without content that arrives meanwhile.
    @Test("row 126: the CPU time is limited", arguments: ["content", "silence"])
    func row126ProcessorTime(kind: String) async throws {
        let workshop = try Workshop()
        try await workshop.python(
            kind == "content"
                ? """
                with tarfile.open(path, "w:xz", preset=0) as tar: data(tar, "f", os.urandom(4 << 20) + bytes(60 << 20))
                """
                : """
                empty = gzip.compress(b"")
                with tarfile.open("x.tar", "w") as tar: data(tar, "f")
                open(path, "wb").write(empty * 400000 + gzip.compress(open("x.tar", "rb").read()))
                """)
        await workshop.expect(.archiveRefused, "CPU time", of: "it.tar") {
            ($0.processorTime, $0.processorTimePerMiB) = (.milliseconds(10), .zero)
            $0.ratio = 100_000
        }
        // The time for each MiB of the archive or of its content is enough.
        let result = try await workshop.unpack("it.tar") {
            $0.processorTime = .milliseconds(10)
            $0.ratio = 100_000
        }
        #expect(result.entries == 1)
    }

    @Test("row 126: gzip in gzip")
    func row126Layers() async throws {
        let workshop = try Workshop()
        try await workshop.shell("echo x > x; tar cz x | gzip > it.tar; rm x")
        await workshop.expect(.archiveRefused, "compressed more than once", of: "it.tar")
    }

    // MARK: Damaged archives

    @Test("a wrong declared size", arguments: [10, 3_000_000, 4_000_000_000])
    func declaredSize(size: Int) async throws {
        let workshop = try Workshop()
        try await workshop.python(
            """
            with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as zip: zip.writestr("a", b"\\0" * 1000000)
            raw = open(path, "rb").read().replace(struct.pack("<I", 1000000), struct.pack("<I", \(size)))
            open(path, "wb").write(raw)
            """)
        await workshop.expect(.archiveDamaged, "", of: "it.tar")
    }

    @Test("content with a wrong checksum")
    func wrongChecksum() async throws {
        let workshop = try Workshop()
        try await workshop.python(
            """
            with zipfile.ZipFile(path, "w") as zip: zip.writestr("a", b"hello hello hello")
            open(path, "r+b").write(open(path, "rb").read().replace(b"hello hello", b"hello jello"))
            """)
        await workshop.expect(.archiveDamaged, "CRC", of: "it.tar")
    }

    @Test("a truncated archive", arguments: ["tar cf", "tar czf", "tar cJf", "tar --zstd -cf", "zip -q"])
    func truncated(program: String) async throws {
        let workshop = try Workshop()
        try await workshop.shell(
            "head -c 3000000 /dev/urandom > r; \(program) it.zip r; truncate -s 2000000 it.zip; rm r")
        await workshop.expect(.archiveDamaged, "it.zip: the downloaded archive was not unpacked", of: "it.zip")
    }

    @Test("an encrypted zip file is reported as encrypted")
    func encrypted() async throws {
        let workshop = try Workshop()
        try await workshop.shell("echo x > x; zip -q -P secret it.zip x; rm x")
        await workshop.expect(.archiveRefused, "encrypted", of: "it.zip")
    }

    @Test("files that are not archives")
    func noArchive() async throws {
        let workshop = try Workshop()
        try await workshop.shell("echo hello > it.zip; : > nothing; mkdir dir; gzip -k it.zip")
        for name in ["it.zip", "nothing", "dir", "it.zip.gz"] { await workshop.expect(.archiveDamaged, "", of: name) }
        await workshop.expect(.unusableDestination, "", of: "missing")
    }
}
