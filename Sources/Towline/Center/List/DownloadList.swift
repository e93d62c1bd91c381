import Foundation
import TowlineCore
import TowlineEngine

/// Answers the queries of callers of the library about downloads: snapshots, pages of the list, totals and timelines.
/// Sends no request to any server.
struct DownloadList: Sendable {
    let registry: any Registry
    let files: any DownloadFiles
    let journals: JournalCache
    let running: RunningDownloads
    let board: HostBoard
    let hub: SnapshotHub

    static let notFound = TowlineError(
        .unknownDownload, "the download was removed from the list. Add the URL again to download the file")

    /// Returns the entry of a download in the registry, the database of all downloads. Throws `unknownDownload` if the
    /// registry does not contain it.
    func record(_ id: DownloadID) async throws(TowlineError) -> RegisteredDownload {
        try running.checkOpen()
        guard let record = try await registry.download(id) else {
            throw TowlineError.unknown(id)
        }
        return record
    }

    /// Returns the download that the registry contains for the URL and destination of a request; `nil` if there is
    /// none.
    func find(_ request: DownloadRequest) async throws(TowlineError) -> DownloadID? {
        try running.checkOpen()
        try request.check()
        if let id = try await registry.find(identity: try request.identity()) { return id }
        // The list does not keep the secrets of finished downloads.
        var plain = request
        plain.forgetSecrets()
        return plain == request ? nil : try await registry.find(identity: try plain.identity())
    }

    func exists(_ id: DownloadID) async throws(TowlineError) -> Bool {
        try running.checkOpen()
        return try await registry.download(id) != nil
    }

    func page(_ query: DownloadQuery) async throws(TowlineError) -> DownloadPage {
        try running.checkOpen()
        var query = query
        query.limit = min(max(1, query.limit), 1000)
        let page = try await registry.page(query)
        return DownloadPage(downloads: await snapshots(of: page.downloads), next: page.next)
    }

    func totals() async throws(TowlineError) -> DownloadTotals {
        try running.checkOpen()
        var totals = try await registry.totals()
        // The list is updated every few seconds. Without the new bytes, the sums would be less than their parts.
        for download in running.all {
            let new = download.newBytes
            totals.heldBytes = Self.clippedSum(totals.heldBytes, new.held)
            totals.completeLength = Self.clippedSum(totals.completeLength, new.complete)
        }
        totals.counts.merge(DownloadQuery.Filter.allCases.map { ($0, 0) }) { count, _ in count }
        return totals
    }

    /// Returns the sum of two numbers of bytes, for the totals of all downloads, limited to 0 through `Int64.max`,
    /// because servers may send any length.
    private static func clippedSum(_ sum: Int64, _ more: Int64) -> Int64 {
        let (result, overflow) = sum.addingReportingOverflow(more)
        return max(0, overflow ? (more > 0 ? .max : 0) : result)
    }

    func timeline(_ id: DownloadID, after number: Int64, limit: Int) async throws(TowlineError) -> [TimelineNote] {
        if let change = running[id]?.takeChange(progress: false) { try await registry.apply([change]) }
        _ = try await record(id)
        return try await registry.timeline(of: id, after: number, limit: min(max(1, limit), 10_000))
    }

    func request(_ id: DownloadID) async throws(TowlineError) -> DownloadRequest {
        guard let request = running[id]?.request else { return StoredRequest.request(of: try await record(id)) }
        return request.asAdded
    }

    // MARK: Snapshots

    /// Returns the snapshot of a download. Without a transfer, the progress comes from the journal. Throws
    /// `unknownDownload` if the registry does not contain the download.
    func snapshot(_ id: DownloadID) async throws(TowlineError) -> DownloadSnapshot {
        if let snapshot = running.snapshot(of: id) { return snapshot }
        let record = try await record(id)
        return await snapshots(of: [record])[0]
    }

    /// Returns the snapshots of several downloads, in the order of `ids`. Downloads that are not in the registry are
    /// missing.
    func snapshots(_ ids: [DownloadID]) async throws(TowlineError) -> [DownloadSnapshot] {
        try running.checkOpen()
        return await snapshots(of: try await registry.downloads(ids))
    }

    /// Returns the snapshots of the downloads with these entries in the registry (the database of all downloads), in
    /// the same order.
    func snapshots(of records: [RegisteredDownload]) async -> [DownloadSnapshot] {
        let held = await held(records)
        return records.map { running.snapshot(of: $0, held: held[$0.id] ?? nil) }
    }

    /// Returns the journal summaries (name, length, byte ranges) of downloads, by identifier. Downloads with a transfer
    /// are missing.
    func held(_ records: [RegisteredDownload]) async -> [DownloadID: JournalSummary?] {
        await journals.summaries(of: records.filter { running[$0.id] == nil })
    }

    /// Returns whether the registry contains a download with the directory and name of an unfinished file that was
    /// found on the disk.
    func contains(_ file: UnfinishedFile) async throws(TowlineError) -> Bool {
        var query = DownloadQuery()
        query.text = file.held.name
        repeat {
            let page = try await registry.page(query)
            if page.downloads.contains(where: { $0.directory == file.directory && $0.name == file.held.name }) {
                return true
            }
            query.cursor = page.next
        } while query.cursor != nil
        return false
    }
}

extension DownloadRequest {
    /// Creates a request that resumes an unfinished download found on the disk; `nil` if its journal contains no valid
    /// URL.
    init?(_ file: UnfinishedFile) {
        guard let url = URL(string: file.source) else { return nil }
        let directory = URL(fileURLWithPath: file.directory, isDirectory: true)
        self.init(from: url, to: .file(directory.appendingPathComponent(file.held.name, isDirectory: false)))
        options.checksum = file.checksum
        publicAddressesOnly = file.publicAddressesOnly
    }
}
