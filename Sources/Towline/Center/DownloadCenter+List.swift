import Foundation
import TowlineCore
import TowlineEngine

/// Queries and changes of the list of downloads in the registry.
extension DownloadCenter {
    func exists(_ id: DownloadID) async throws(TowlineError) -> Bool {
        try checkOpen()
        return try await registry.download(id) != nil
    }

    func page(_ query: DownloadQuery) async throws(TowlineError) -> DownloadPage {
        try checkOpen()
        let page = try await registry.page(RegistryQuery(query))
        return DownloadPage(
            downloads: await snapshots(of: page.downloads), next: page.next.map { DownloadCursor(text: $0.text) })
    }

    func totals() async throws(TowlineError) -> DownloadTotals {
        try checkOpen()
        var totals = try await registry.totals()
        // The list is updated every few seconds. Without the new bytes, the sums would be less than their parts.
        for download in running.all {
            let new = download.newBytes
            totals.heldBytes = Self.clippedSum(totals.heldBytes, new.held)
            totals.completeLength = Self.clippedSum(totals.completeLength, new.complete)
        }
        return DownloadTotals(totals)
    }

    /// Returns `sum` plus `more`, limited to 0 through `Int64.max`, because servers may send any length.
    private static func clippedSum(_ sum: Int64, _ more: Int64) -> Int64 {
        let (result, overflow) = sum.addingReportingOverflow(more)
        return max(0, overflow ? (more > 0 ? .max : 0) : result)
    }

    func timeline(_ id: DownloadID, after number: Int64, limit: Int) async throws(TowlineError) -> [TimelineNote] {
        if let change = running[id]?.takeChange(progress: false) { try await registry.apply([change]) }
        _ = try await record(id)
        return try await registry.timeline(of: id, after: number, limit: min(max(1, limit), 10_000))
            .map { TimelineNote($0) }
    }

    func request(_ id: DownloadID) async throws(TowlineError) -> DownloadRequest {
        if let download = running[id] { return download.request }
        let record = try await record(id)
        return (try? StoredRequest.decode(record.options)) ?? DownloadRequest(record)
    }

    func move(_ id: DownloadID, before other: DownloadID?) async throws(TowlineError) {
        _ = try await record(id)
        try await registry.move(id, before: other)
        await publish(id)
    }

    /// Adds the unfinished downloads whose journals are in a directory and that are not in the list of downloads. They
    /// are added paused.
    func adopt(_ directory: String) async throws(TowlineError) -> [DownloadID] {
        try checkOpen()
        var requests: [DownloadRequest] = []
        for file in await files.unfinished(in: directory) {
            guard var request = DownloadRequest(file) else { continue }
            request.startsPaused = true
            if try await !knows(file) { requests.append(request) }
        }
        return try await add(requests)
    }

    private func knows(_ file: UnfinishedFile) async throws(TowlineError) -> Bool {
        var query = RegistryQuery()
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
        checksum = file.checksum
        publicAddressesOnly = file.publicAddressesOnly
    }
}
