import Foundation
import TowlineCore
import TowlineDisk
import TowlineEngine

/// Keeps each download on its disk: the file system of its directory is stored with the download, which waits while
/// another one is mounted there. Otherwise it would start over on the bare mount point of a disk that is not mounted.
struct DiskCheck {
    let registry: any Registry
    let files: any DownloadFiles
    let locks: RequestLocks

    /// Returns new requests with the file systems of their directories, as far as the directories exist or are on a
    /// known disk that is not mounted.
    func located(_ requests: [DownloadRequest]) async -> [DownloadRequest] {
        var known = await knownDisks
        var found: [String: FileSystemIdentity?] = [:]
        var located = requests
        for index in requests.indices {
            guard let directory = try? requests[index].place.directory else { continue }
            if found[directory] == nil {
                found[directory] = .some(await locate(directory, &known))
            }
            located[index].fileSystem = found[directory] ?? nil
        }
        return located
    }

    private func locate(_ directory: String, _ known: inout KnownDisks) async -> FileSystemIdentity? {
        guard let finding = await files.fileSystem(directory) else { return nil }
        if let disk = await known.missing(at: directory, finding.identity) { return disk }
        guard finding.isOfDirectory else { return nil }
        await known.remember(finding.identity, of: directory)
        return finding.identity
    }

    /// The file systems on which downloads were stored.
    var knownDisks: KnownDisks {
        get async { await KnownDisks(registry: registry, files: files) }
    }

    /// Checks that the disk of a download is mounted, before its transfer begins. For a download whose directory was
    /// created after it was added, stores the file system of the directory.
    ///
    /// - Returns: the task that stores it; it must end before the result of the transfer is written.
    /// - Throws: the error of `lostDisk` if another disk, or none, is mounted.
    func begin(_ download: LiveDownload) async throws(TowlineError) -> Task<Void, Never>? {
        if let error = await lostDisk(of: download) { throw error }
        let (request, record) = (download.request, download.record)
        guard request.fileSystem == nil, request.isStored(in: record.directory),
            let found = await files.fileSystem(record.directory), found.isOfDirectory
        else { return nil }
        return Task { await remember(found.identity, for: download) }
    }

    private func remember(_ fileSystem: FileSystemIdentity, for download: LiveDownload) async {
        await locks.acquire(download.id)
        defer { locks.release(download.id) }
        // The request in the list, which a command may have changed since the transfer began.
        guard let record = try? await registry.download(download.id),
            var request = try? StoredRequest.decode(record.options)
        else { return }
        request.fileSystem = fileSystem
        var change = RegistryChange(download.id)
        change.options = try? StoredRequest.encode(request)
        var known = await knownDisks
        await known.remember(fileSystem, of: record.directory)
        // If the list cannot be written, the next transfer stores the file system.
        guard (try? await registry.apply([change])) != nil else { return }
        download.update { _, request in request.fileSystem = fileSystem }
    }

    /// Returns the error of a download whose disk is not mounted; `nil` if the disk is mounted or not known.
    func lostDisk(of download: LiveDownload) async -> TowlineError? {
        await lostDisk(of: download.request, download.record)
    }

    /// Throws if the disk of a download without a transfer is not mounted, so that its files there cannot be deleted.
    func check(_ record: RegisteredDownload) async throws(TowlineError) {
        if record.name != nil, let error = await lostDisk(of: record) { throw error }
    }

    private func lostDisk(of record: RegisteredDownload) async -> TowlineError? {
        await lostDisk(of: (try? StoredRequest.decode(record.options)) ?? DownloadRequest(record), record)
    }

    private func lostDisk(of request: DownloadRequest, _ record: RegisteredDownload) async -> TowlineError? {
        guard let fileSystem = request.fileSystem, request.isStored(in: record.directory),
            let found = await files.fileSystem(record.directory), !found.identity.isSame(as: fileSystem)
        else { return nil }
        let directory = TerminalSafeText.make(record.directory)
        let wayOut =
            found.isOfDirectory
            ? "Mount the disk. To continue on the disk that is mounted now, move the download to the same directory"
            : "Mount the disk, or move the download to another directory"
        return TowlineError(
            .unusableDestination,
            "the disk of this download is not mounted at \(directory). \(wayOut)", systemError: ENODEV)
    }

    /// Returns whether the disk still keeps a waiting download from running, so that no server is asked in vain.
    func blocks(_ id: DownloadID, _ code: WaitCode) async -> Bool {
        guard let record = try? await registry.download(id) else { return false }
        if code == .destination {
            guard await lostDisk(of: record) == nil else { return true }
            return await !files.isWritable(record)
        }
        guard let length = record.completeLength, let free = await files.freeSpace(record.directory) else {
            return false
        }
        return free < max(length - record.heldBytes, 1 << 20)
    }
}

extension DownloadRequest {
    /// Returns whether `directory` is the one of the request. A follow-up may have moved the finished file to another.
    fileprivate func isStored(in directory: String) -> Bool { (try? place.directory) == directory }
}
