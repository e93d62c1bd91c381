import Synchronization
import TowlineCore
import TowlineEngine

/// Brings snapshots to those who want them. Never waits for a reader.
final class SnapshotHub: Sendable {
    private struct Readers {
        var streams: [DownloadID: [Int: AsyncStream<DownloadSnapshot>.Continuation]] = [:]
        var mailboxes: [Int: WeakMailbox] = [:]
        var nextNumber = 0
        var isClosed = false
    }

    private struct WeakMailbox {
        weak var mailbox: EventMailbox?
    }

    private let readers = Mutex(Readers())
    private let isRead = Atomic<Bool>(false)

    /// Whether anybody reads anything.
    var hasReaders: Bool { isRead.load(ordering: .relaxed) }

    /// Snapshots of one download, beginning with `first`; only the newest is kept for a reader that is slow. Ends after
    /// one that is over.
    func stream(_ id: DownloadID, first: DownloadSnapshot?) -> AsyncStream<DownloadSnapshot> {
        AsyncStream(bufferingPolicy: .bufferingNewest(1)) { continuation in
            let number = readers.withLock { readers -> Int? in
                guard !readers.isClosed else { return nil }
                readers.nextNumber += 1
                readers.streams[id, default: [:]][readers.nextNumber] = continuation
                isRead.store(true, ordering: .relaxed)
                return readers.nextNumber
            }
            if let first {
                continuation.yield(first)
                if first.isOver { continuation.finish() }
            }
            guard let number else { return continuation.finish() }
            continuation.onTermination = { [weak self] _ in self?.leave(id, number) }
        }
    }

    /// The downloads of which somebody reads snapshots.
    var followed: [DownloadID] { readers.withLock { Array($0.streams.keys) } }

    private func leave(_ id: DownloadID, _ number: Int) {
        readers.withLock { readers in
            readers.streams[id]?[number] = nil
            if readers.streams[id]?.isEmpty == true { readers.streams[id] = nil }
            isRead.store(!readers.streams.isEmpty || !readers.mailboxes.isEmpty, ordering: .relaxed)
        }
    }

    /// A mailbox that gets everything from now on, for as long as somebody holds it.
    func mailbox() -> EventMailbox {
        let mailbox = EventMailbox()
        readers.withLock { readers in
            guard !readers.isClosed else { return mailbox.close() }
            readers.mailboxes = readers.mailboxes.filter { $0.value.mailbox != nil }
            readers.nextNumber += 1
            readers.mailboxes[readers.nextNumber] = WeakMailbox(mailbox: mailbox)
            isRead.store(true, ordering: .relaxed)
        }
        return mailbox
    }

    /// Tells what a download is like now.
    ///
    /// - Returns: how many were told.
    @discardableResult
    func publish(_ snapshot: DownloadSnapshot) -> Int {
        guard hasReaders else { return 0 }
        let (streams, mailboxes) = readers.withLock { readers in
            (readers.streams[snapshot.id].map { Array($0.values) } ?? [], readers.mailboxes.compactMap(\.value.mailbox))
        }
        for stream in streams {
            stream.yield(snapshot)
            if snapshot.isOver { stream.finish() }
        }
        for mailbox in mailboxes { mailbox.put(.changed(snapshot)) }
        return streams.count + mailboxes.count
    }

    /// Tells all readers of events.
    func publish(_ event: DownloadEvent) {
        guard hasReaders else { return }
        for mailbox in readers.withLock({ $0.mailboxes.compactMap(\.value.mailbox) }) { mailbox.put(event) }
    }

    /// Tells of a timeline's new entry.
    func publish(_ entry: TimelineEntry, of id: DownloadID) { publish(.noted(id, TimelineNote(entry))) }

    /// No more of this download: it is gone.
    func end(_ id: DownloadID) {
        let streams = readers.withLock { $0.streams.removeValue(forKey: id) }
        for stream in streams?.values.map({ $0 }) ?? [] { stream.finish() }
    }

    /// Ends everything.
    func close() {
        let (streams, mailboxes) = readers.withLock { readers in
            readers.isClosed = true
            defer { readers.streams = [:] }
            return (readers.streams.values.flatMap(\.values), readers.mailboxes.compactMap(\.value.mailbox))
        }
        for stream in streams { stream.finish() }
        for mailbox in mailboxes { mailbox.close() }
    }
}

extension TimelineNote {
    init(_ entry: TimelineEntry) {
        self.init(number: entry.number, time: entry.time, kind: entry.kind, message: entry.message)
    }
}
