import Synchronization
import TowlineCore
import TowlineEngine

/// Brings snapshots to those who want them. Never waits for a reader.
final class SnapshotHub: Sendable {
    private struct Readers {
        var streams: [DownloadID: [Int: Reader]] = [:]
        var mailboxes: [Int: WeakMailbox] = [:]
        var nextNumber = 0
        var isClosed = false
    }

    private struct Reader {
        let continuation: AsyncStream<DownloadSnapshot>.Continuation
        var wasTold = false
    }

    private struct WeakMailbox {
        weak var mailbox: EventMailbox?
    }

    private let readers = Mutex(Readers())
    private let isRead = Atomic<Bool>(false)

    /// Whether anybody reads anything.
    var hasReaders: Bool { isRead.load(ordering: .relaxed) }

    /// Snapshots of one download from now on; only the newest is kept for a reader that is slow. Ends after one that is
    /// over.
    func stream(_ id: DownloadID) -> AsyncStream<DownloadSnapshot> { register(id).stream }

    /// The same, beginning with what it is like; ends at once if that is not known.
    ///
    /// Asked for when the stream is there already: an end that comes while it is looked up would be told to nobody, and
    /// whoever waits for it would wait for ever.
    func stream(
        _ id: DownloadID, beginningWith look: () async -> DownloadSnapshot?
    ) async -> AsyncStream<DownloadSnapshot> {
        let (stream, continuation, number) = register(id)
        guard let first = await look() else {
            continuation.finish()
            return stream
        }
        let isNews = readers.withLock { readers in
            // What was told meanwhile is newer, or what was looked up will be told next: an end that was looked up is one
            // that is about to be told.
            guard readers.streams[id]?[number]?.wasTold != true else { return false }
            continuation.yield(first)
            return true
        }
        if isNews, first.isOver { continuation.finish() }
        return stream
    }

    private func register(
        _ id: DownloadID
    ) -> (
        stream: AsyncStream<DownloadSnapshot>, continuation: AsyncStream<DownloadSnapshot>.Continuation, number: Int
    ) {
        let (stream, continuation) = AsyncStream.makeStream(
            of: DownloadSnapshot.self, bufferingPolicy: .bufferingNewest(1))
        let (number, isOpen) = readers.withLock { readers in
            readers.nextNumber += 1
            guard !readers.isClosed else { return (readers.nextNumber, false) }
            readers.streams[id, default: [:]][readers.nextNumber] = Reader(continuation: continuation)
            isRead.store(true, ordering: .relaxed)
            return (readers.nextNumber, true)
        }
        continuation.onTermination = { [weak self] _ in self?.leave(id, number) }
        if !isOpen { continuation.finish() }
        return (stream, continuation, number)
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
            for number in (readers.streams[snapshot.id] ?? [:]).keys {
                readers.streams[snapshot.id]?[number]?.wasTold = true
            }
            let streams = readers.streams[snapshot.id]?.values.map(\.continuation) ?? []
            return (streams, readers.mailboxes.compactMap(\.value.mailbox))
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
        for stream in streams?.values.map(\.continuation) ?? [] { stream.finish() }
    }

    /// Ends everything.
    func close() {
        let (streams, mailboxes) = readers.withLock { readers in
            readers.isClosed = true
            defer { readers.streams = [:] }
            let streams = readers.streams.values.flatMap { $0.values.map(\.continuation) }
            return (streams, readers.mailboxes.compactMap(\.value.mailbox))
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
