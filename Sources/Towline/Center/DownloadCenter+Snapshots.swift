import TowlineCore
import TowlineEngine

/// Snapshots of downloads, from their transfers or from the list and the journals.
extension DownloadCenter {
    /// Returns the snapshot of a download. Without a transfer, the progress comes from the journal.
    func snapshot(_ id: DownloadID) async throws(TowlineError) -> DownloadSnapshot {
        if let end = unwritten[id] { return end.snapshot }
        if let download = live[id] { return download.snapshot }
        let record = try await record(id)
        return await snapshots(of: [record])[0]
    }

    /// Returns the snapshots of several downloads, without those that are not in the list.
    func snapshots(_ ids: [DownloadID]) async throws(TowlineError) -> [DownloadSnapshot] {
        try checkOpen()
        return await snapshots(of: try await registry.downloads(ids))
    }

    /// Returns the snapshots of entries of the list.
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

    /// Reads the journals of downloads without a transfer. A summary is cached for `journalLife`, or until a transfer
    /// changes the journal.
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
    /// The time after which a journal is read again, because another program may have changed the journal.
    private static let journalLife = Duration.seconds(10)

    /// Forgets the journal of a download that a transfer or a command changes.
    func forgetJournal(of id: DownloadID) {
        journals[id] = nil
        journalChanges += 1
    }

    /// Publishes the snapshot of a download.
    func publish(_ id: DownloadID) async {
        guard hub.hasReaders, let record = try? await registry.download(id) else { return }
        let held = await held([record])
        // Reading a journal takes time. The last published snapshot must be the newest.
        guard let record = try? await registry.download(id) else { return }
        hub.publish(snapshot(of: record, held: held[id] ?? nil))
    }
}
