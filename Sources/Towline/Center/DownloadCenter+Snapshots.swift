import TowlineCore
import TowlineEngine

/// Snapshots of downloads: from the transfer of a running download, otherwise from the registry and the journal.
extension DownloadCenter {
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
        try checkOpen()
        return await snapshots(of: try await registry.downloads(ids))
    }

    /// Returns the snapshots of the downloads with these registry entries, in the same order.
    func snapshots(of records: [RegisteredDownload]) async -> [DownloadSnapshot] {
        let held = await held(records)
        return records.map { snapshot(of: $0, held: held[$0.id] ?? nil) }
    }

    private func snapshot(of record: RegisteredDownload, held: JournalSummary?) -> DownloadSnapshot {
        running.snapshot(of: record.id) ?? DownloadSnapshot(record, held)
    }

    /// Returns the journal summaries of downloads, by identifier. Downloads with a transfer are missing.
    private func held(_ records: [RegisteredDownload]) async -> [DownloadID: JournalSummary?] {
        await journals.summaries(of: records.filter { running[$0.id] == nil })
    }

    /// Publishes the current snapshot of a download to the readers of its snapshots and events. Has no effect if the
    /// registry does not contain the download.
    func publish(_ id: DownloadID) async {
        guard hub.hasReaders, let record = try? await registry.download(id) else { return }
        let held = await held([record])
        // Reading a journal takes time. The last published snapshot must be the newest.
        guard let record = try? await registry.download(id) else { return }
        hub.publish(snapshot(of: record, held: held[id] ?? nil))
    }
}
