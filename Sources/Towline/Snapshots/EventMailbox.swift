import Synchronization
import TowlineCore

/// A queue of the unread events of one reader, with at most one change for each download and `maximumNotes` other
/// events, such as timeline notes. The size is limited because downloads do not wait for a slow reader.
final class EventMailbox: Sendable {
    /// The unread events of a mailbox, and the reader that waits for the next one.
    fileprivate struct Contents {
        var order: [DownloadID] = []
        var first = 0
        var latest: [DownloadID: DownloadEvent] = [:]
        var notes: [DownloadEvent] = []
        var missed = 0
        var isListChanged = false
        var isClosed = false
        var reader: CheckedContinuation<Void, Never>?
    }

    /// The maximum number of unread timeline notes and errors. Further notes and errors are only counted.
    private static let maximumNotes = 1000
    private let contents: Mutex<Contents> = Mutex(Contents())

    /// Adds an event, unless the mailbox is closed. A change replaces an unread change of the same download. If the
    /// mailbox contains `maximumNotes` notes and errors, a further note or error is only counted.
    func put(_ event: DownloadEvent) {
        let reader = contents.withLock { contents -> CheckedContinuation<Void, Never>? in
            guard !contents.isClosed else { return nil }
            switch event {
            case .added(let snapshot): contents.set(event, snapshot.id)
            case .removed(let id): contents.set(event, id)
            case .changed(let snapshot):
                // An unread addition stays an addition, with the new snapshot.
                if case .added = contents.latest[snapshot.id] {
                    contents.latest[snapshot.id] = .added(snapshot)
                } else {
                    contents.set(event, snapshot.id)
                }
            case .listChanged: contents.isListChanged = true
            case .noted, .missed, .troubled:
                if contents.notes.count < Self.maximumNotes {
                    contents.notes.append(event)
                } else {
                    contents.missed += 1
                }
            }
            return contents.reader.take()
        }
        reader?.resume()
    }

    /// Waits for the next event and returns it. Returns `nil` if the mailbox is closed and empty or the task is
    /// cancelled.
    func next() async -> DownloadEvent? {
        while true {
            let (event, isClosed) = contents.withLock { ($0.take(), $0.isClosed) }
            if let event { return event }
            if isClosed || Task.isCancelled { return nil }
            await withTaskCancellationHandler {
                await withCheckedContinuation { continuation in
                    let goesOn = contents.withLock { contents -> Bool in
                        guard contents.isEmpty, !contents.isClosed, !Task.isCancelled else { return true }
                        contents.reader = continuation
                        return false
                    }
                    if goesOn { continuation.resume() }
                }
            } onCancel: {
                contents.withLock { $0.reader.take() }?.resume()
            }
        }
    }

    /// Stops accepting events. Unread events can still be read.
    func close() {
        contents.withLock { contents in
            contents.isClosed = true
            return contents.reader.take()
        }?.resume()
    }
}

extension EventMailbox.Contents {
    fileprivate var isEmpty: Bool { notes.isEmpty && missed == 0 && first == order.count && !isListChanged }

    fileprivate mutating func set(_ event: DownloadEvent, _ id: DownloadID) {
        if latest.updateValue(event, forKey: id) == nil { order.append(id) }
    }

    fileprivate mutating func take() -> DownloadEvent? {
        if first < order.count {
            let id = order[first]
            first += 1
            // Read entries are removed even if the reader never catches up.
            if first == order.count || first > 1024 && first > order.count / 2 {
                order.removeFirst(first)
                first = 0
            }
            return latest.removeValue(forKey: id)
        }
        if isListChanged {
            isListChanged = false
            return .listChanged
        }
        if !notes.isEmpty { return notes.removeFirst() }
        guard missed > 0 else { return nil }
        defer { missed = 0 }
        return .missed(missed)
    }
}

/// An asynchronous sequence of the events of a ``DownloadManager``, for one reader.
///
/// A slow reader misses intermediate changes, but always receives the last change of each download. Unread events take
/// at most the memory of one change for each download and 1000 notes.
public struct DownloadEvents: AsyncSequence, Sendable {
    let mailbox: EventMailbox

    /// Returns the iterator. The sequence ends when the ``DownloadManager`` is closed or the task is cancelled.
    public func makeAsyncIterator() -> Iterator { Iterator(reader: MailboxReader(mailbox)) }

    /// The iterator of ``DownloadEvents``, which waits for the next event of a downloader.
    public struct Iterator: AsyncIteratorProtocol {
        let reader: MailboxReader

        /// Waits for the next event and returns it. Returns `nil` if the ``DownloadManager`` is closed or the task is
        /// cancelled.
        public mutating func next() async -> DownloadEvent? { await reader.mailbox.next() }
    }
}

/// The owner of a mailbox, the queue of a reader's unread events. Closes the mailbox when the reader's last iterator is
/// released, so that no events are queued without a reader.
final class MailboxReader: Sendable {
    let mailbox: EventMailbox

    init(_ mailbox: EventMailbox) { self.mailbox = mailbox }

    deinit { mailbox.close() }
}
