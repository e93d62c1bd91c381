import Foundation
import TowlineCore
import TowlineEngine

extension DownloadCenter {
    /// Changes the directory of a download without a transfer. Moves no file: the file, or the part file and the
    /// journal, must already be in the new directory. The present directory lets the download continue there although
    /// another disk is mounted there now.
    ///
    /// - Throws: `illegalTransition` if the download runs, or if its files are still in the old directory;
    ///   `destinationBusy` if another download has the same URL in the new directory. Nothing is changed then.
    func setDirectory(_ id: DownloadID, _ directory: URL) async throws(TowlineError) {
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
        let isThere = record.state == .finished ? await files.hasFinished(record) : await files.holds(record)
        guard !isThere else {
            throw TowlineError(
                .illegalTransition,
                """
                the files of \(name) are still in \(TerminalSafeText.make(record.directory)). Move them to the new \
                directory (an unfinished download consists of NAME.tow and NAME.tow-journal), then repeat the command
                """)
        }
        var request = (try? StoredRequest.decode(record.options)) ?? DownloadRequest(record)
        request.setDirectory(directory, insteadOf: record.directory)
        request.fileSystem = nil
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
    /// Lets a download continue on the disk that is mounted at its directory now. The caller holds the lock of the
    /// request.
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
