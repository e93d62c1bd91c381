import Foundation
import Testing

@testable import TowlineSystem

/// Tests of moving a file on file systems with limited features.
@Suite struct FileMoveTests {
    private let root = NSTemporaryDirectory() + "/tow-move-" + UUID().uuidString
    private var from: String { root + "/from" }
    private var to: String { root + "/to" }

    private func make() throws {
        try FileManager.default.createDirectory(atPath: root, withIntermediateDirectories: true)
        try Data("mine".utf8).write(to: URL(fileURLWithPath: from))
    }

    private func text(_ path: String) -> String? { try? String(contentsOfFile: path, encoding: .utf8) }

    /// NFS and some FUSE file systems do not support a rename without replacing. FAT does not support links either.
    @Test(arguments: [false, true]) func withoutNoreplaceNothingIsReplaced(canLink: Bool) throws {
        try make()
        defer { try? FileManager.default.removeItem(atPath: root) }
        var calls = FileMove.Calls()
        calls.move = { _, _ in -EINVAL }
        if !canLink { calls.link = { _, _ in -EPERM } }
        try Data("theirs".utf8).write(to: URL(fileURLWithPath: to))
        #expect(FileMove.rename((AT_FDCWD, from), to: (AT_FDCWD, to), calls) == EEXIST)
        #expect(text(from) == "mine" && text(to) == "theirs")
        try FileManager.default.removeItem(atPath: to)
        #expect(FileMove.rename((AT_FDCWD, from), to: (AT_FDCWD, to), calls) == 0)
        #expect(text(from) == nil && text(to) == "mine")
    }

    /// A failed sync after the rename is not an error, although the name may not survive a power failure.
    @Test func aFileThatWasMovedIsMoved() throws {
        try make()
        defer { try? FileManager.default.removeItem(atPath: root) }
        var calls = FileMove.Calls()
        calls.synchronize = { _ in EIO }
        #expect(FileMove.rename((AT_FDCWD, from), to: (AT_FDCWD, to), calls) == 0)
        #expect(text(from) == nil && text(to) == "mine")
    }
}
