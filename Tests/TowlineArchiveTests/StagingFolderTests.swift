import Foundation
import Testing
import TowlineCore

@testable import TowlineArchive

/// Tests of file systems that do not support a rename without replacing: NFS and some FUSE file systems.
@Suite("A file system that cannot rename without replacing")
struct StagingFolderTests {
    private func publish(_ workshop: Workshop, _ prepare: () throws -> Void = {}) throws {
        let folder = try workshop.stagingFolder(for: "it")
        try Data("x".utf8).write(to: URL(fileURLWithPath: workshop.out + "/.it.unpacking-1/content/x"))
        try prepare()
        try folder.publish(as: "it", durable: false) { source, from, target, to, keeps in
            guard keeps == 0, let from, let to else { return -EINVAL }
            return renameat(source, from, target, to) == 0 ? 0 : -errno
        }
    }

    @Test("the directory is published")
    func appears() throws {
        let workshop = try Workshop()
        try publish(workshop)
        #expect(workshop.names(workshop.out) == ["it"])
        #expect(workshop.text("x") == "x")
    }

    @Test("an entry that appeared meanwhile is kept", arguments: ["a file", "a directory"])
    func stays(kind: String) throws {
        let workshop = try Workshop()
        let error = #expect(throws: TowlineError.self) {
            try publish(workshop) {
                if kind == "a file" {
                    try Data("mine".utf8).write(to: URL(fileURLWithPath: workshop.out + "/it"))
                } else {
                    try FileManager.default.createDirectory(
                        atPath: workshop.out + "/it/mine", withIntermediateDirectories: true)
                }
            }
        }
        #expect(error?.code == .destinationExists)
        #expect(workshop.names(workshop.out) == ["it"])
        #expect(workshop.text("x") == nil)
    }
}
