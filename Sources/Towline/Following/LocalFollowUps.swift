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
    /// The storage, whose roots limit the directories that are changed; `nil` without limits.
    var storage: FileStorage?

    func perform(_ followUp: FollowUp, of file: FinishedFile) async throws(TowlineError) -> String? {
        try storage?.checkRoots(Place(path: file.path).directory)
        if let target = followUp.target { try storage?.checkRoots(target.deletingLastPathComponent().path) }
        switch followUp {
        case .unpack(let directory, let deletesArchive):
            try await unpack(file, directory)
            guard deletesArchive else { return nil }
            try delete(file)
            return directory.standardizedFileURL.path
        case .move(let target): return try move(file, target)
        case .run(let program, let arguments, let timeout): try await run(program, arguments, timeout, file)
        case .notify(let url): try await notify(url, file)
        }
        return nil
    }

    private func unpack(_ file: FinishedFile, _ directory: URL) async throws(TowlineError) {
        let target = directory.standardizedFileURL
        // A kill prevented the entry in the list. The archive may already be deleted.
        if UnpackReceipt.isOn(target.path, file.receipt) { return }
        do throws(TowlineError) {
            _ = try await Unpacker().unpack(
                file.path, into: target.deletingLastPathComponent().path, as: target.lastPathComponent,
                receipt: file.receipt)
        } catch {
            // The directory appears only when it is complete. A directory with the receipt of this step was unpacked
            // before a kill prevented the entry in the list. Any other directory of this name is not ours: an error.
            if error.code == .destinationExists, UnpackReceipt.isOn(target.path, file.receipt) { return }
            throw error
        }
    }

    /// Deletes the archive after it was unpacked. A missing file is no error: a kill may have followed the deletion.
    private func delete(_ file: FinishedFile) throws(TowlineError) {
        guard unlink(file.path) != 0, errno != ENOENT else { return }
        let number = errno
        throw TowlineError(
            .followUpFailed,
            "the archive \(TerminalSafeText.make(file.path)) was unpacked and cannot be deleted: "
                + "\(String(cString: strerror(number))). Delete it, or start the download again",
            systemError: number)
    }

    /// Moves the file with one rename and returns the new path. Throws `destinationExists` if the target exists, and
    /// `followUpFailed` if the rename fails, for example because the target is on another file system.
    private func move(_ file: FinishedFile, _ target: URL) throws(TowlineError) -> String {
        let path = target.standardizedFileURL.path
        // A file that was downloaded again replaced the file that an earlier run moved.
        if path == file.path { return path }
        let (source, name) = (TerminalSafeText.make(file.path), TerminalSafeText.make(path))
        let number = FileMove.rename(file.path, to: path, receipt: file.receipt)
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
