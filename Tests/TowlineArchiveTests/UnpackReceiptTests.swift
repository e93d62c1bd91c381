import Foundation
import Testing
import TowlineCore

@testable import TowlineArchive

/// Tests of the removal of an unpacked directory, in which the user may have changed something.
@Suite struct UnpackReceiptTests {
    /// MS_BIND of mount(2).
    private static let bind: UInt = 4096

    /// Unpacks the files `x`, `linked` (a hard link to it) and `sub/y` to the directory `it`.
    private func unpacked() throws -> Workshop {
        let workshop = try Workshop()
        let folder = try workshop.stagingFolder(for: "it")
        let content = workshop.out + "/.it.unpacking-1/content/"
        try FileManager.default.createDirectory(atPath: content + "sub", withIntermediateDirectories: true)
        for name in ["x", "sub/y"] { try Data("old".utf8).write(to: URL(fileURLWithPath: content + name)) }
        #expect(link(content + "x", content + "linked") == 0)
        try folder.publish(as: "it", durable: false, receipt: "mine")
        try #require(UnpackReceipt.isOn(workshop.out + "/it", in: AT_FDCWD, "mine"))
        return workshop
    }

    private func changed(_ path: String) -> timespec {
        var status = stat()
        lstat(path, &status)
        return status.st_ctim
    }

    /// Writes a file until the clock of the file system has advanced.
    private func write(_ name: String, _ workshop: Workshop) throws {
        let (path, old) = (workshop.out + "/it/" + name, changed(workshop.out + "/it"))
        repeat {
            try Data("new".utf8).write(to: URL(fileURLWithPath: path))
        } while (changed(path).tv_sec, changed(path).tv_nsec) <= (old.tv_sec, old.tv_nsec)
    }

    private func remove(_ workshop: Workshop) -> Bool {
        let parent = open(workshop.out, O_RDONLY | O_DIRECTORY)
        defer { close(parent) }
        return UnpackReceipt.removeDirectory("it", in: parent, "mine")
    }

    private func names(_ workshop: Workshop) -> [String] {
        (FileManager.default.enumerator(atPath: workshop.out)?.compactMap { $0 as? String } ?? []).sorted()
    }

    @Test func allOfTheArchiveIsRemoved() throws {
        let workshop = try unpacked()
        for other in ["min", ""] { #expect(!UnpackReceipt.isOn(workshop.out + "/it", in: AT_FDCWD, other)) }
        #expect(remove(workshop) && names(workshop).isEmpty)
    }

    @Test(arguments: ["z", "sub/z", "sub/y"]) func aFileOfTheUserStays(_ name: String) throws {
        let workshop = try unpacked()
        try write(name, workshop)
        #expect(remove(workshop))
        #expect(names(workshop) == (name.hasPrefix("sub") ? ["it", "it/sub", "it/" + name] : ["it", "it/" + name]))
    }

    /// A file system that the user mounted in the directory is not part of it.
    @Test(.enabled(if: geteuid() == 0)) func anotherFileSystemStays() throws {
        let workshop = try unpacked()
        let other = try Workshop()
        try Data("precious".utf8).write(to: URL(fileURLWithPath: other.out + "/p"))
        let place = workshop.out + "/it/sub"
        try #require(mount(other.out, place, "", Self.bind, nil) == 0)
        #expect(remove(workshop))
        #expect(umount(place) == 0)
        #expect(names(other) == ["p"] && names(workshop) == ["it", "it/sub", "it/sub/y"])
    }
}
