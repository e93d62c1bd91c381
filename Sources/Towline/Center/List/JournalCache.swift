import Synchronization
import TowlineCore
import TowlineEngine

/// A cache of the journal summaries (name, length, byte ranges) of downloads without a transfer.
final class JournalCache: Sendable {
    /// A cached summary (name, length, byte ranges) of a journal and the time when the journal was read.
    private struct Entry {
        /// The name, the length and the byte ranges in the journal; `nil` if the download has no journal.
        var summary: JournalSummary?
        var readAt: ContinuousClock.Instant
    }

    /// The cached journal summaries, and the number of `forget` calls, which removed some.
    private struct Contents {
        var entries: [DownloadID: Entry] = [:]
        /// The number of calls of `forget`. A changed number means that a summary that was just read may be outdated
        /// and is not cached.
        var changes = 0
    }

    /// The maximum number of cached journal summaries.
    private static let maximumCount = 10_000
    /// The time after which a cached summary expires and the journal is read again, because another program may have
    /// changed the journal.
    private static let life = Duration.seconds(10)

    private let files: any DownloadFiles
    private let state = Mutex(Contents())

    init(_ files: any DownloadFiles) { self.files = files }

    /// Returns the journal summaries of downloads without a transfer, by identifier. A value is `nil` without a
    /// journal. Downloads in a state without a journal are missing. A summary is cached for 10 seconds, or until
    /// `forget` is called.
    func summaries(of records: [RegisteredDownload]) async -> [DownloadID: JournalSummary?] {
        let now = ContinuousClock.now
        let records = records.filter { $0.state.mayHaveJournal }
        var found: [DownloadID: JournalSummary?] = [:]
        let (entries, changes) = state.withLock { ($0.entries, $0.changes) }
        for record in records {
            guard let entry = entries[record.id], now - entry.readAt < Self.life else { continue }
            found[record.id] = .some(entry.summary)
        }
        let unread = records.filter { found[$0.id] == nil }
        if unread.isEmpty { return found }
        let read = Array(zip(unread.map(\.id), await files.held(unread)))
        for (id, summary) in read { found[id] = .some(summary) }
        state.withLock { state in
            // A transfer may have changed the journal during the read.
            guard state.changes == changes else { return }
            if state.entries.count + read.count > Self.maximumCount { state.entries = [:] }
            for (id, summary) in read { state.entries[id] = Entry(summary: summary, readAt: .now) }
        }
        return found
    }

    /// Removes the cached journal summary of a download, because a transfer or a command changes the journal. A
    /// `summary` that is not `nil` was read after the change and replaces the old one.
    func forget(_ id: DownloadID, replacement summary: JournalSummary? = nil) {
        state.withLock { state in
            state.entries[id] = summary.map { Entry(summary: $0, readAt: .now) }
            state.changes += 1
        }
    }

    /// Deletes the part file and the journal of an unfinished download. Throws if that fails, or if their disk is not
    /// mounted.
    func discard(_ record: RegisteredDownload, _ disks: DiskCheck) async throws(TowlineError) {
        try await disks.check(record)
        defer { forget(record.id) }
        try await files.discardUnfinished(record)
    }
}
