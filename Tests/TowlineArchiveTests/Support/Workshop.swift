import Foundation
import Testing
import TowlineCore

@testable import TowlineArchive

/// A temporary directory for one test, where archives are created and unpacked.
final class Workshop: Sendable {
    let path: String

    init() throws {
        path = NSTemporaryDirectory() + "/tow-archive-" + UUID().uuidString
        try FileManager.default.createDirectory(atPath: path + "/out", withIntermediateDirectories: true)
    }

    deinit { try? FileManager.default.removeItem(atPath: path) }

    /// The directory that archives are unpacked into.
    var out: String { path + "/out" }

    func file(_ name: String) -> String { path + "/" + name }

    /// Returns the names in a directory, sorted.
    func names(_ folder: String) -> [String] {
        ((try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []).sorted()
    }

    /// Creates the temporary directory of an archive in `out`.
    func stagingFolder(for name: String) throws -> StagingFolder {
        let parent = open(out, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        defer { close(parent) }
        return try StagingFolder(in: parent, at: out, for: name)
    }

    func text(_ name: String) -> String? { try? String(contentsOfFile: out + "/it/" + name, encoding: .utf8) }

    func status(_ name: String) -> stat? {
        var status = stat()
        return lstat(out + "/it/" + name, &status) == 0 ? status : nil
    }

    /// Runs a shell script in the directory.
    func shell(_ script: String) async throws { try await run(["/bin/sh", "-ec", script]) }

    /// Runs a Python script in the directory. The script has archive modules imported and the archive's name in `path`.
    func python(_ script: String, _ archive: String = "it.tar") async throws {
        let head = """
            import io, os, struct, sys, tarfile, zipfile, zlib, gzip
            path = "\(archive)"
            def entry(name, kind=tarfile.REGTYPE, target="", mode=0o644):
                info = tarfile.TarInfo(name)
                info.type, info.linkname, info.mode = kind, target, mode
                return info
            def data(tar, name, content=b"x", mode=0o644):
                info = entry(name, mode=mode)
                info.size = len(content)
                tar.addfile(info, io.BytesIO(content))

            """
        try await run(["/usr/bin/python3", "-c", head + script])
    }

    private func run(_ command: [String]) async throws {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: command[0])
        process.arguments = Array(command.dropFirst())
        process.currentDirectoryURL = URL(fileURLWithPath: path)
        process.standardInput = FileHandle.nullDevice
        let status = try await withCheckedThrowingContinuation {
            (continuation: CheckedContinuation<Int32, any Error>) in
            process.terminationHandler = { continuation.resume(returning: $0.terminationStatus) }
            do { try process.run() } catch { continuation.resume(throwing: error) }
        }
        try #require(status == 0, "\(command.last ?? "")")
    }

    /// Unpacks `archive` as `it`.
    @discardableResult
    func unpack(_ archive: String, _ change: (inout UnpackLimits) -> Void = { _ in }) async throws -> Unpacker.Result {
        var limits = UnpackLimits()
        change(&limits)
        let parent = open(out, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        defer { close(parent) }
        return try await unpack(archive, in: parent, limits)
    }

    /// Unpacks `archive` as `it` in the open directory `parent`, which was opened as `out`.
    @discardableResult
    func unpack(
        _ archive: String, in parent: Int32, _ limits: UnpackLimits = UnpackLimits()
    ) async throws -> Unpacker.Result {
        try await Unpacker(limits: limits).unpack(
            .init(in: AT_FDCWD, named: file(archive), path: file(archive)),
            into: .init(in: parent, named: "it", path: out + "/it"), durable: false)
    }

    /// Unpacks an archive, and expects an error with this code and text and no remaining files.
    func expect(
        _ code: TowlineError.Code, _ reason: String, of archive: String,
        _ change: (inout UnpackLimits) -> Void = { _ in },
        _ location: SourceLocation = #_sourceLocation
    ) async {
        do {
            _ = try await unpack(archive, change)
            Issue.record("it was unpacked: \(names(out + "/it"))", sourceLocation: location)
        } catch let error as TowlineError {
            #expect(error.code == code, "\(error)", sourceLocation: location)
            #expect(reason.isEmpty || error.message.contains(reason), "\(error)", sourceLocation: location)
        } catch {
            Issue.record(error, sourceLocation: location)
        }
        #expect(names(out) == [], sourceLocation: location)
    }
}
