import Foundation
import TowlineCore
import TowlineEngine

extension DownloadCenter {
    /// Changes the directory of a download that does not run. Moves no file: the file, or the part file and the
    /// journal, must already be in the new directory. The present directory lets the download continue there although
    /// another disk is mounted there now.
    ///
    /// - Throws: `illegalTransition` if the download runs, or if its files are still in the old directory, or if a
    ///   finished file is not in the new directory; `destinationBusy` if another download has the same URL or an
    ///   unfinished file of the same name in the new directory. Nothing is changed then.
    func setDirectory(_ id: DownloadID, _ directory: URL) async throws(TowlineError) {
        guard let download = running.all.first(where: { $0.id == id }), download.isWaiting else {
            return try await changeDirectory(id, directory)
        }
        // A download that waits for its next attempt keeps its part file open.
        try await pause(id)
        await running.run(of: download)?.value
        do throws(TowlineError) {
            try await changeDirectory(id, directory)
        } catch {
            try? await resume(id)
            throw error
        }
        try await resume(id)
    }

    private func changeDirectory(_ id: DownloadID, _ directory: URL) async throws(TowlineError) {
        await locks.acquire(id)
        defer { locks.release(id) }
        while let claim = running.claim(of: id) { await claim.value }
        let record = try await list.record(id)
        let path = directory.standardizedFileURL.path
        guard path != record.directory else { return try await continueHere(record) }
        let name = record.name.map { TerminalSafeText.make($0) } ?? "the download"
        guard running.isFree(id) else {
            throw TowlineError(
                .illegalTransition, "\(name) is running. Pause the download, then change its directory")
        }
        let isThere = record.state.isComplete ? await files.hasFinished(record) : await files.holds(record)
        guard !isThere else {
            throw TowlineError(
                .illegalTransition,
                """
                the files of \(name) are still in \(TerminalSafeText.make(record.directory)). Move them to the new \
                directory (those of an unfinished download begin with NAME.tow), then repeat the command
                """)
        }
        var request = (try? StoredRequest.decode(record.options)) ?? DownloadRequest(record)
        try await checkFiles(of: record, request, in: path)
        request.setDirectory(directory, insteadOf: record.directory)
        request = await scheduler.disks.located([request])[0]
        let identity = try request.identity()
        if let other = try await registry.find(identity: identity), other != id {
            throw TowlineError(
                .destinationBusy,
                "another download of the same URL uses \(TerminalSafeText.make(path)). Choose another directory")
        }
        var change = try RegistryChange(record, replacingRequestWith: request)
        (change.directory, change.identity) = (path, identity)
        change.note("moved", "the directory of the download was changed", at: clock.milliseconds)
        guard try await scheduler.apply(change, onlyFrom: record.state) else {
            throw TowlineError(
                .illegalTransition, "the state of \(name) changed in the meantime. Repeat the command")
        }
        await scheduler.use(request, for: id, restarts: false)
    }
}

extension DownloadCenter {
    /// Throws an error if a finished file is not in the directory `path`, or if another download has an unfinished file
    /// of this name there.
    private func checkFiles(
        of record: RegisteredDownload, _ request: DownloadRequest, in path: String
    ) async throws(TowlineError) {
        guard let name = record.name else { return }
        let (shownName, shownPath) = (TerminalSafeText.make(name), TerminalSafeText.make(path))
        if record.state.isComplete {
            var moved = record
            moved.directory = path
            let isDeleted = request.followUps.contains {
                if case .unpack(_, deletesArchive: true) = $0 { true } else { false }
            }
            guard !isDeleted, await !files.hasFinished(moved) else { return }
            throw TowlineError(
                .illegalTransition,
                "\(shownName) is not in \(shownPath). Move the file there, then repeat the command")
        }
        let others = try await registry.downloads(named: name, limit: 1000)
        let isUsed = others.contains {
            $0.id != record.id && $0.directory == path && $0.state.mayHaveJournal
        }
        guard isUsed else { return }
        throw TowlineError(
            .destinationBusy,
            "another download saves \(shownName) in \(shownPath). Choose another directory, or remove that download")
    }

    /// Lets a download, and later additions, use the disk that is mounted at its directory now. The caller holds the
    /// lock of the request.
    private func continueHere(_ record: RegisteredDownload) async throws(TowlineError) {
        guard running.isFree(record.id), var request = try? StoredRequest.decode(record.options),
            request.fileSystem != nil
        else { return }
        request.fileSystem = nil
        var change = try RegistryChange(record, replacingRequestWith: request)
        if record.state == .waiting, record.reasonCode == WaitCode.destination.rawValue {
            change.state = .init(.queued)
        }
        let message = "the download continues on the file system that is now at its directory"
        change.note("moved", message, at: clock.milliseconds)
        guard try await scheduler.apply(change, onlyFrom: record.state) else { return }
        await scheduler.disks.knownDisks.forget(record.directory)
        await scheduler.use(request, for: record.id, restarts: false)
    }
}

extension DownloadRequest {
    /// Replaces the directory of the destination, and of archives that are unpacked below the old directory.
    fileprivate mutating func setDirectory(_ directory: URL, insteadOf old: String) {
        switch destination {
        case .directory: destination = .directory(directory)
        case .file(let url):
            destination = .file(directory.appendingPathComponent(url.lastPathComponent, isDirectory: false))
        }
        followUps = followUps.map { action in
            guard case .unpack(let place, let deletesArchive) = action, place.path.hasPrefix(old + "/") else {
                return action
            }
            let below = String(place.path.dropFirst(old.count + 1))
            return .unpack(
                into: directory.appendingPathComponent(below, isDirectory: true), deletesArchive: deletesArchive)
        }
    }
}
