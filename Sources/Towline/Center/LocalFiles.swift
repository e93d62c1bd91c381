import Foundation
import TowlineArchive
import TowlineCore
import TowlineDisk
import TowlineEngine
import TowlineThreads

/// The disk operations of a `Downloader` on the local file system. They run on threads that may block.
struct LocalFiles: DownloadFiles {
    let storage: FileStorage

    func held(_ records: [RegisteredDownload]) async -> [JournalSummary?] {
        await WorkThread.runBriefly { records.map { held($0) } }
    }

    func content(_ record: RegisteredDownload) async throws(TowlineError) -> ContentFile {
        try await WorkThread.runBriefly { () throws(TowlineError) in try openContent(record) }
    }

    func hasFinished(_ record: RegisteredDownload) async -> Bool { await WorkThread.runBriefly { isFinished(record) } }

    func mismatch(
        _ record: RegisteredDownload, _ checksum: Checksum
    ) async throws(TowlineError) -> ChecksumMismatch? {
        let place = Place(directory: record.directory, name: record.name ?? "")
        let link = LinkIdentity(try HTTPURL(parsing: record.source))
        switch try await storage.prove(place, link: link, checksum: checksum) {
        case .proven: return nil
        case .refuted(let mismatch?): return mismatch
        case .refuted(nil):
            throw TowlineError(
                .unusableDestination,
                "\(TerminalSafeText.make(place.path)) was changed or removed while Towline compared it with a checksum. "
                    + "Add the download again")
        }
    }

    func holds(_ record: RegisteredDownload) async -> Bool { await WorkThread.runBriefly { isBegun(record) } }

    func discardUnfinished(_ record: RegisteredDownload) async throws(TowlineError) {
        try await WorkThread.runBriefly { () throws(TowlineError) in try discard(record) }
    }

    func removeFinished(_ record: RegisteredDownload) async throws(TowlineError) {
        try await WorkThread.runBriefly { () throws(TowlineError) in try removeFile(record) }
    }

    func freeSpace(_ directory: String) async -> Int64? {
        await WorkThread.runBriefly {
            let attributes = try? FileManager.default.attributesOfFileSystem(forPath: directory)
            return (attributes?[.systemFreeSize] as? NSNumber)?.int64Value
        }
    }

    func isWritable(_ record: RegisteredDownload) async -> Bool {
        await WorkThread.runBriefly {
            let place = Place(directory: record.directory, name: record.name ?? "")
            return access(record.directory, W_OK | X_OK) == 0 && !storage.isInUse(place)
        }
    }

    func fileSystem(_ directory: String) async -> FileSystemIdentity.Finding? {
        await WorkThread.runBriefly {
            // A link that leads out of the downloads directory is an error of the transfer, and no other disk.
            (try? storage.checkRoots(directory)) == nil ? nil : FileSystemIdentity.find(directory)
        }
    }

    func unfinished(in directory: String) async -> [UnfinishedFile] {
        await WorkThread.runBriefly { find(in: directory) }
    }

    private func held(_ record: RegisteredDownload) -> JournalSummary? {
        let place: Place? =
            if let name = record.name {
                Place(directory: record.directory, name: name)
            } else if let url = try? HTTPURL(parsing: record.source) {
                storage.find(LinkIdentity(url), inDirectory: record.directory)
            } else {
                nil
            }
        guard let place, let report = try? storage.inspect(place) else { return nil }
        return JournalSummary(report, place)
    }

    private func openContent(_ record: RegisteredDownload) throws(TowlineError) -> ContentFile {
        guard let name = record.name else {
            throw TowlineError(
                .unusableDestination, "no bytes of the download are on the disk yet. Start the download first")
        }
        return try storage.content(
            Place(directory: record.directory, name: name), isFinished: record.state.isComplete,
            length: record.completeLength)
    }

    private func isFinished(_ record: RegisteredDownload) -> Bool {
        guard let name = record.name else { return false }
        let status = storage.status(of: Place(directory: record.directory, name: name))
        // A follow-up that deletes the archive leaves the unpacked directory as the result.
        if status?.kind == .directory { return isUnpacked(record) }
        guard let status, status.kind == .regular else { return false }
        return status.size == record.completeLength ?? status.size
    }

    /// Returns whether a follow-up of this download unpacked the directory with its name, and deleted the archive.
    private func isUnpacked(_ record: RegisteredDownload) -> Bool {
        guard let name = record.name else { return false }
        let receipt = receipt(of: record)
        return (try? storage.withDirectory(record.directory) { UnpackReceipt.isOn(name, in: $0, receipt) }) ?? false
    }

    private func receipt(of record: RegisteredDownload) -> String {
        FinishedFile.receipt(of: record.id, endedAt: record.endedAt ?? record.addedAt)
    }

    private func isBegun(_ record: RegisteredDownload) -> Bool {
        guard let name = record.name,
            let report = try? storage.inspect(Place(directory: record.directory, name: name))
        else { return false }
        return links(record).contains { report.source.relation(to: $0) == .same }
    }

    /// Returns the URLs that the journal or the finished file of this download may contain as their source, to
    /// recognize its files: the current URL and the URL of the original request.
    private func links(_ record: RegisteredDownload) -> [LinkIdentity] {
        let first = record.identity.split(separator: "\n", omittingEmptySubsequences: false).dropFirst().first
        return [record.source, first.map { String($0) } ?? ""]
            .compactMap { text in (try? HTTPURL(parsing: text)).map { LinkIdentity($0) } }
    }

    private func discard(_ record: RegisteredDownload) throws(TowlineError) {
        guard let name = record.name else { return }
        let place = Place(directory: record.directory, name: name)
        _ = try ifUsable { () throws(TowlineError) in try storage.discard(place, from: links(record)) }
    }

    /// Returns the result of `body`; `nil` if no file of this download can be there: the directory does not exist, a
    /// link in its path leads elsewhere, or something else has the name, such as a download of another process.
    private func ifUsable<Value>(_ body: () throws(TowlineError) -> Value) throws(TowlineError) -> Value? {
        do throws(TowlineError) {
            return try body()
        } catch {
            guard error.code == .unusableDestination || error.code == .destinationBusy else { throw error }
            return nil
        }
    }

    private func removeFile(_ record: RegisteredDownload) throws(TowlineError) {
        guard let name = record.name else { return }
        let place = Place(directory: record.directory, name: name)
        let isPublished = try ifUsable { () throws(TowlineError) in
            try storage.isPublished(place, from: links(record), length: record.completeLength)
        }
        if isPublished == true { try storage.remove(place) }
        try removeUnpacked(record, place)
    }

    /// Removes the directories that follow-ups of this download unpacked, which carry its receipt: the one that
    /// replaced its file, and those beside it.
    private func removeUnpacked(_ record: RegisteredDownload, _ place: Place) throws(TowlineError) {
        var places = [place]
        for case .unpack(let directory, _) in StoredRequest.request(of: record).followUps {
            places.append(Place(path: directory.standardizedFileURL.path))
        }
        let receipt = receipt(of: record)
        for place in places {
            let isRemoved = try ifUsable { () throws(TowlineError) in
                try storage.withDirectory(place.directory) {
                    UnpackReceipt.removeDirectory(place.name, in: $0, receipt)
                }
            }
            guard isRemoved ?? true else {
                throw TowlineError(
                    .diskPermission,
                    "cannot remove the unpacked directory \(TerminalSafeText.make(place.path)). Check the permissions "
                        + "of the files in it")
            }
        }
    }

    private func find(in directory: String) -> [UnfinishedFile] {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: directory)) ?? []
        return JournalReader.finalNames(ofJournalsIn: names).compactMap { name in
            let place = Place(directory: directory, name: name)
            guard let report = try? storage.inspect(place) else { return nil }
            return UnfinishedFile(
                directory: directory, source: report.record.source, held: JournalSummary(report, place),
                checksum: report.record.checksums.first,
                publicAddressesOnly: report.record.publicAddressesOnly, id: report.record.download)
        }
    }

    /// Returns the unfinished downloads in a directory as new entries for the registry, after the registry was lost.
    /// The entries have the IDs of their journals. They are paused: the user decides which downloads resume.
    func orphans(in directory: String) -> [RegisteredDownload] {
        let names = IDSource()
        return find(in: directory).compactMap { file in
            guard let request = DownloadRequest(file), let source = try? request.source,
                let options = try? StoredRequest.encode(request), let identity = try? request.identity()
            else { return nil }
            var record = RegisteredDownload(
                id: file.id ?? names.next(), source: file.source, host: source.origin.description, directory: directory,
                name: file.held.name, identity: identity, options: options, state: .paused,
                addedAt: SystemClock().milliseconds)
            record.completeLength = file.held.completeLength
            record.heldBytes = file.held.heldBytes
            return record
        }
    }
}

extension JournalSummary {
    /// Creates a summary of a journal, limited to the byte ranges that the part file contains. Without the part file,
    /// no byte ranges remain.
    init(_ report: JournalReport, _ place: Place) {
        let part = ByteRange(0, max(0, report.partLength ?? 0))
        self.init(
            name: place.name, completeLength: report.record.representation.completeLength,
            written: report.isSamePart ? report.written.intersection(part) : ByteRangeSet())
    }
}
