import Synchronization
import TowlineCore
import TowlineEngine

/// Distributes snapshots of downloads and events to all readers in the app: streams of snapshots, and mailboxes of
/// events. Never waits for a reader.
package final class SnapshotHub: Sendable {
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

    /// Creates a hub without readers.
    package init() {}

    /// A Boolean value that indicates whether any snapshot stream or event mailbox exists. Without readers, callers
    /// need not create snapshots.
    package var hasReaders: Bool { isRead.load(ordering: .relaxed) }

    /// Returns a stream of the snapshots of one download that are published from now on. A slow reader gets only the
    /// newest snapshot. The stream ends when the download is removed.
    package func stream(_ id: DownloadID) -> AsyncStream<DownloadSnapshot> { register(id).stream }

    /// Returns a stream of the snapshot that `look` returns, followed by the snapshots that are published afterwards.
    /// The stream is empty if `look` returns `nil`, because the download does not exist. It begins with the next
    /// published snapshot if `look` throws an error, because the state is not known yet.
    ///
    /// The stream is registered before `look` is called. Otherwise, an end during `look` would be lost, and a reader
    /// would wait for it for ever.
    package func stream(
        _ id: DownloadID, beginningWith look: () async throws(TowlineError) -> DownloadSnapshot?
    ) async -> AsyncStream<DownloadSnapshot> {
        let (stream, continuation, number) = register(id)
        let first: DownloadSnapshot?
        do throws(TowlineError) { first = try await look() } catch { return stream }
        guard let first else {
            continuation.finish()
            return stream
        }
        readers.withLock { readers in
            // A snapshot that was published meanwhile is newer, or equal.
            if readers.streams[id]?[number]?.wasTold != true { continuation.yield(first) }
        }
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

    /// The identifiers of the downloads that have a reader of their snapshots (a stream), so that only their snapshots
    /// are published after a change of the whole list.
    package var followed: [DownloadID] { readers.withLock { Array($0.streams.keys) } }

    private func leave(_ id: DownloadID, _ number: Int) {
        readers.withLock { readers in
            readers.streams[id]?[number] = nil
            if readers.streams[id]?.isEmpty == true { readers.streams[id] = nil }
            isRead.store(!readers.streams.isEmpty || !readers.mailboxes.isEmpty, ordering: .relaxed)
        }
    }

    /// The events from now on, for one reader.
    package var events: DownloadEvents { DownloadEvents(mailbox: mailbox()) }

    /// Returns a mailbox that receives all events from now on. The hub keeps only a weak reference: the reader owns the
    /// mailbox.
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

    /// Delivers the current snapshot of a download to its streams and, as the event `changed`, to all mailboxes.
    ///
    /// - Returns: the number of readers that received the snapshot.
    @discardableResult
    package func publish(_ snapshot: DownloadSnapshot) -> Int {
        guard hasReaders else { return 0 }
        let (streams, mailboxes) = readers.withLock { readers in
            for number in (readers.streams[snapshot.id] ?? [:]).keys {
                readers.streams[snapshot.id]?[number]?.wasTold = true
            }
            let streams = readers.streams[snapshot.id]?.values.map(\.continuation) ?? []
            return (streams, readers.mailboxes.compactMap(\.value.mailbox))
        }
        for stream in streams { stream.yield(snapshot) }
        for mailbox in mailboxes { mailbox.put(.changed(snapshot)) }
        return streams.count + mailboxes.count
    }

    /// Delivers an event to the mailboxes of all readers of `Downloader.events`.
    package func publish(_ event: DownloadEvent) {
        guard hasReaders else { return }
        for mailbox in readers.withLock({ $0.mailboxes.compactMap(\.value.mailbox) }) { mailbox.put(event) }
    }

    /// Delivers a new timeline note of a download to the mailboxes of all readers of `Downloader.events`.
    package func publish(_ note: TimelineNote, of id: DownloadID) { publish(.noted(id, note)) }

    /// Ends the snapshot streams of a removed download.
    package func end(_ id: DownloadID) {
        let streams = readers.withLock { $0.streams.removeValue(forKey: id) }
        for stream in streams?.values.map(\.continuation) ?? [] { stream.finish() }
    }

    /// Ends all snapshot streams and closes all mailboxes, because the downloader closes.
    package func close() {
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
