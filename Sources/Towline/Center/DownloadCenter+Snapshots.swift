import TowlineCore
import TowlineEngine

/// Snapshots of downloads: from the transfer of a running download, otherwise from the registry and the journal.
extension DownloadCenter {
    /// Returns the snapshot of a download. Without a transfer, the progress comes from the journal. Throws
    /// `unknownDownload` if the registry does not contain the download.
    func snapshot(_ id: DownloadID) async throws(TowlineError) -> DownloadSnapshot {
        if let end = unwritten[id] { return end.snapshot }
        if let download = live[id] { return download.snapshot }
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
        if let end = unwritten[record.id] { return end.snapshot }
        if let download = live[record.id] { return download.snapshot }
        var snapshot = DownloadSnapshot(record)
        guard record.state.mayHaveJournal else { return snapshot }
        guard let held else {
            // Without a journal, no bytes are kept. Only an active small file has bytes and no journal.
            if record.state != .active { snapshot.heldBytes = 0 }
            return snapshot
        }
        snapshot.heldBytes = held.heldBytes
        snapshot.completeLength = held.completeLength ?? snapshot.completeLength
        snapshot.name = held.name
        return snapshot
    }

    /// Returns the journal summaries (name, size, byte ranges) of downloads without a transfer, by identifier. A value
    /// is `nil` without a journal. A summary is cached for `journalLife`, or until a transfer changes the journal.
    func held(_ records: [RegisteredDownload]) async -> [DownloadID: JournalSummary?] {
        var held: [DownloadID: JournalSummary?] = [:]
        var unread: [RegisteredDownload] = []
        for record in records where record.state.mayHaveJournal && live[record.id] == nil {
            if let known = journals[record.id], ContinuousClock.now - known.readAt < Self.journalLife {
                held[record.id] = known.summary
            } else {
                unread.append(record)
            }
        }
        if unread.isEmpty { return held }
        let changes = journalChanges
        let read = await files.held(unread)
        if journals.count + read.count > Self.mostJournals { journals = [:] }
        for (record, found) in zip(unread, read) {
            held[record.id] = found
            // A transfer may have changed the journal during the read.
            if changes == journalChanges, live[record.id] == nil { journals[record.id] = (found, .now) }
        }
        return held
    }

    /// The maximum number of cached journal summaries.
    private static let mostJournals = 10_000
    /// The time after which a cached summary expires and the journal is read again, because another program may have
    /// changed the journal.
    private static let journalLife = Duration.seconds(10)

    /// Removes the cached journal summary of a download, because a transfer or a command changes the journal.
    func forgetJournal(of id: DownloadID) {
        journals[id] = nil
        journalChanges += 1
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
