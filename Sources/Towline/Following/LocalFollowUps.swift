import Foundation
import TowlineArchive
import TowlineCore
import TowlineDisk
import TowlineEngine
import TowlineSystem

#if Library
    import TowlineCurl
#endif

/// Performs the follow-ups of finished downloads: unpacks archives, moves files and runs programs on this machine, and
/// sends notifications.
struct LocalFollowUps: FollowUpPerformer {
    /// The storage, whose roots limit the directories that are changed.
    var storage = FileStorage()

    func perform(_ followUp: FollowUp, of file: FinishedFile) async throws(TowlineError) -> String? {
        switch followUp {
        case .unpack(let directory, let deletesArchive):
            let path = directory.standardizedFileURL.path
            try await unpack(file, path, deletesArchive)
            return deletesArchive ? path : nil
        case .move(let target): return try move(file, target.standardizedFileURL.path)
        case .run(let program, let arguments, let timeout):
            try storage.checkRoots(Place(path: file.path).directory)
            try await run(program, arguments, timeout, file)
        case .notify(let url): try await notify(url, file)
        }
        return nil
    }

    private func unpack(_ file: FinishedFile, _ path: String, _ deletesArchive: Bool) async throws(TowlineError) {
        let target = try OpenPlace(path, storage)
        let archive = Result { () throws(TowlineError) in try OpenPlace(file.path, storage) }
        defer { withExtendedLifetime((target, archive)) {} }
        do throws(TowlineError) {
            // A kill prevented the entry in the list. The archive may already be deleted.
            if !isUnpacked(target, file) {
                let archive = try archive.get()
                _ = try await Unpacker().unpack(
                    .init(in: archive.parent, named: archive.name, path: archive.path),
                    into: .init(in: target.parent, named: target.name, path: target.path), receipt: file.receipt)
            }
        } catch {
            // The directory appears only when it is complete. A directory with the receipt of this step was unpacked
            // before a kill prevented the entry in the list. Any other directory of this name is not ours: an error.
            guard error.code == .destinationExists, isUnpacked(target, file) else { throw error }
        }
        if deletesArchive { try delete(archive) }
    }

    private func isUnpacked(_ target: OpenPlace, _ file: FinishedFile) -> Bool {
        UnpackReceipt.isOn(target.name, in: target.parent, file.receipt)
    }

    /// Deletes the archive after it was unpacked. A missing file is no error: a kill may have followed the deletion.
    private func delete(_ archive: Result<OpenPlace, TowlineError>) throws(TowlineError) {
        if case .failure(let error) = archive, error.systemError == ENOENT { return }
        let archive = try archive.get()
        guard unlinkat(archive.parent, archive.name, 0) != 0, errno != ENOENT else { return }
        let number = errno
        throw TowlineError(
            .followUpFailed,
            "the archive \(TerminalSafeText.make(archive.path)) was unpacked and cannot be deleted: "
                + "\(String(cString: strerror(number))). Delete it, or start the download again",
            systemError: number)
    }

    /// Moves the file with one rename and returns the new path. Throws `destinationExists` if the target exists, and
    /// `followUpFailed` if the rename fails, for example because the target is on another file system.
    private func move(_ file: FinishedFile, _ path: String) throws(TowlineError) -> String {
        // A file that was downloaded again replaced the file that an earlier run moved.
        if path == file.path { return path }
        let (source, name) = (TerminalSafeText.make(file.path), TerminalSafeText.make(path))
        let (old, new) = (try OpenPlace(file.path, storage), try OpenPlace(path, storage))
        let number = withExtendedLifetime((old, new)) {
            FileMove.rename((old.parent, old.name), to: (new.parent, new.name), receipt: file.receipt)
        }
        switch number {
        case 0: return path
        case EEXIST:
            throw TowlineError(
                .destinationExists,
                "cannot move \(source) to \(name): the target already exists. Remove the target, then retry the "
                    + "download to run only this follow-up action again",
                systemError: number)
        case EXDEV:
            throw TowlineError(
                .followUpFailed,
                "cannot move \(source) to \(name): the target is on another file system. "
                    + "Download to a directory on that file system instead",
                systemError: number)
        default:
            throw TowlineError(
                .followUpFailed,
                "cannot move \(source) to \(name): \(String(cString: strerror(number))). "
                    + "Correct the cause, then retry the download to run only this follow-up action again",
                systemError: number)
        }
    }

    private func run(_ program: URL, _ arguments: [String], _ timeout: Duration, _ file: FinishedFile)
        async throws(TowlineError)
    {
        let source = try HTTPURL(parsing: file.source)
        let path = URL(fileURLWithPath: file.path, isDirectory: false)
        let directory = path.deletingLastPathComponent().path
        let words = CommandTemplate([program.path] + arguments)
            .filled(directory: directory, name: path.lastPathComponent, url: source)
        let limit = min(max(.seconds(1), timeout), .seconds(1_000_000_000))
        let outcome = try await CommandRunner(timeLimit: limit).run(words)
        guard !outcome.succeeded else { return }
        let tail = TerminalSafeText.make(String(decoding: outcome.tail.suffix(500), as: UTF8.self))
        throw TowlineError(
            .commandFailed,
            outcome.end.sentence(about: TerminalSafeText.make(program.path))
                + (tail.isEmpty ? "" : ". The last output of this program was: \(tail)"))
    }

    private func notify(_ url: URL, _ file: FinishedFile) async throws(TowlineError) {
        #if Library
            let path = URL(fileURLWithPath: file.path, isDirectory: false)
            let message = WebhookMessage(
                event: "finished", id: file.id.description, name: path.lastPathComponent, path: file.path,
                bytes: file.length, checksum: file.checksum, time: file.endedAt / 1000)
            try await WebhookSender().send(message, to: HTTPURL(parsing: url.absoluteString))
        #else
            throw FollowUp.noWebhooks
        #endif
    }
}

extension CommandRunner.End {
    /// Returns the error message about a program that a follow-up ran and that failed: its exit status, its signal or
    /// its time limit.
    fileprivate func sentence(about program: String) -> String {
        switch self {
        case .exited(let status):
            "the follow-up program \(program) failed with exit status \(status). "
                + "Correct the cause, then retry the download to run only this program again"
        case .killed(let signal):
            "the follow-up program \(program) was killed by signal \(signal). "
                + "Correct the cause, then retry the download to run only this program again"
        case .timedOut:
            "the follow-up program \(program) was stopped because it ran longer than its time limit. "
                + "Correct the cause, then retry the download to run only this program again"
        }
    }
}
