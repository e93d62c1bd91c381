import Foundation
import TowlineArchive
import TowlineCore
import TowlineCurl
import TowlineEngine
import TowlineSystem

/// Follow-ups on this machine.
struct LocalFollowUps: FollowUpPerformer {
    func perform(_ followUp: FollowUp, of file: FinishedFile) async throws(TowlineError) -> String? {
        switch followUp {
        case .unpack(let directory): try await unpack(file, directory)
        case .move(let target): return try move(file, target)
        case .run(let program, let arguments, let timeout): try await run(program, arguments, timeout, file)
        case .notify(let url): try await notify(url, file)
        }
        return nil
    }

    private func unpack(_ file: FinishedFile, _ directory: URL) async throws(TowlineError) {
        let target = directory.standardizedFileURL
        do throws(TowlineError) {
            _ = try await Unpacker().unpack(
                file.path, into: target.deletingLastPathComponent().path, as: target.lastPathComponent)
        } catch {
            // It appears whole or not at all: what is there since this file came is what a kill kept us from noting.
            if error.code == .destinationExists, isNewer(target, than: file) { return }
            throw error
        }
    }

    private func isNewer(_ directory: URL, than file: FinishedFile) -> Bool {
        func changed(_ path: String) -> Date? {
            var status = stat()
            guard lstat(path, &status) == 0 else { return nil }
            return Date(
                timeIntervalSince1970: Double(status.st_ctim.tv_sec) + Double(status.st_ctim.tv_nsec) / 1_000_000_000)
        }
        guard let made = changed(directory.path), let came = changed(file.path) else { return false }
        return made > came
    }

    /// One rename, never over something else.
    private func move(_ file: FinishedFile, _ target: URL) throws(TowlineError) -> String {
        let path = target.standardizedFileURL.path
        let name = TerminalSafeText.make(path)
        let number = FileMove.rename(file.path, to: path)
        if number == 0 { return path }
        // Done already, before a kill.
        if number == ENOENT, length(path) == file.length { return path }
        switch number {
        case EEXIST: throw TowlineError(.destinationExists, "\(name) exists; nothing was moved", systemError: number)
        case EXDEV:
            throw TowlineError(
                .followUpFailed, "\(name) is on another file system; a download goes where its file is to stay",
                systemError: number)
        default:
            throw TowlineError(
                .followUpFailed, "cannot move to \(name): \(String(cString: strerror(number)))", systemError: number)
        }
    }

    private func length(_ path: String) -> Int64? {
        var status = stat()
        return lstat(path, &status) == 0 ? Int64(status.st_size) : nil
    }

    private func run(_ program: URL, _ arguments: [String], _ timeout: Double, _ file: FinishedFile)
        async throws(TowlineError)
    {
        let source = try HTTPURL(parsing: file.source)
        let path = URL(fileURLWithPath: file.path, isDirectory: false)
        let directory = path.deletingLastPathComponent().path
        let words = CommandTemplate([program.path] + arguments)
            .filled(directory: directory, name: path.lastPathComponent, url: source)
        let limit = Duration.milliseconds(Int64(min(max(1, timeout), 1e9) * 1000))
        let outcome = try await CommandRunner(timeLimit: limit).run(words, in: directory)
        guard !outcome.succeeded else { return }
        let tail = TerminalSafeText.make(String(decoding: outcome.tail.suffix(500), as: UTF8.self))
        throw TowlineError(
            .commandFailed,
            "\(TerminalSafeText.make(program.path)) \(outcome.end.words)" + (tail.isEmpty ? "" : ": \(tail)"))
    }

    private func notify(_ url: URL, _ file: FinishedFile) async throws(TowlineError) {
        let path = URL(fileURLWithPath: file.path, isDirectory: false)
        let message = WebhookMessage(
            event: "finished", id: file.id.description, name: path.lastPathComponent, path: file.path,
            bytes: file.length,
            checksum: try file.checksum.map { text throws(TowlineError) in try Checksum(parsing: text) },
            time: file.endedAt / 1000)
        try await WebhookSender().send(message, to: HTTPURL(parsing: url.absoluteString))
    }
}

extension CommandRunner.End {
    /// How it ended, in words.
    fileprivate var words: String {
        switch self {
        case .exited(let status): "ended with status \(status)"
        case .killed(let signal): "was ended by signal \(signal)"
        case .timedOut: "took too long and was ended"
        }
    }
}
