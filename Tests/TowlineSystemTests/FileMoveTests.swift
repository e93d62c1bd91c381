import Foundation
import Testing

@testable import TowlineSystem

/// Moving a file where the file system can less than others.
@Suite struct FileMoveTests {
    private let root = NSTemporaryDirectory() + "/tow-move-" + UUID().uuidString
    private var from: String { root + "/from" }
    private var to: String { root + "/to" }

    private func make() throws {
        try FileManager.default.createDirectory(atPath: root, withIntermediateDirectories: true)
        try Data("mine".utf8).write(to: URL(fileURLWithPath: from))
    }

    private func text(_ path: String) -> String? { try? String(contentsOfFile: path, encoding: .utf8) }

    /// NFS and some of FUSE cannot rename without replacing; FAT cannot link either.
    @Test(arguments: [false, true]) func withoutNoreplaceNothingIsReplaced(canLink: Bool) throws {
        try make()
        defer { try? FileManager.default.removeItem(atPath: root) }
        var calls = FileMove.Calls()
        calls.move = { _, _ in -EINVAL }
        if !canLink { calls.link = { _, _ in -EPERM } }
        try Data("theirs".utf8).write(to: URL(fileURLWithPath: to))
        #expect(FileMove.rename(from, to: to, calls) == EEXIST)
        #expect(text(from) == "mine" && text(to) == "theirs")
        try FileManager.default.removeItem(atPath: to)
        #expect(FileMove.rename(from, to: to, calls) == 0)
        #expect(text(from) == nil && text(to) == "mine")
    }

    /// The file is where it is to be; that the name may not outlive a power loss does not change that.
    @Test func aFileThatWasMovedIsMoved() throws {
        try make()
        defer { try? FileManager.default.removeItem(atPath: root) }
        var calls = FileMove.Calls()
        calls.synchronize = { _ in EIO }
        #expect(FileMove.rename(from, to: to, calls) == 0)
        #expect(text(from) == nil && text(to) == "mine")
    }
}
