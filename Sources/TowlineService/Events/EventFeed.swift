internal import Foundation
internal import Towline
import TowlineWire

/// Distributes download events to any number of clients. Events are batched a few times a second. A slow client gets
/// only the newest event of each download.
///
/// Events are collected only while clients listen. A client that reconnects within a minute misses no event.
actor EventFeed {
    private let downloader: Downloader
    private let interval: Duration
    private var window = EventWindow()
    /// Identifies the event numbers of this feed. Numbers of another process, or from before a pause, are invalid.
    private var epoch = EventFeed.newEpoch()
    private var batch = Batch()
    private var totals: Wire.Totals?
    private var waiters: [Int: CheckedContinuation<Void, Never>] = [:]
    private var nextWaiter = 0
    private var collector: Task<Void, Never>?
    private var heartbeat: Task<Void, Never>?
    private var isFlushing = false
    private var isClosed = false
    /// Number of connected clients.
    private(set) var clients = 0

    /// The changes that are not sent yet.
    private struct Batch {
        var pending: [DownloadID: (name: String, snapshot: DownloadSnapshot?)] = [:]
        /// The downloads in `pending`, in the order of their first change.
        var order: [DownloadID] = []
        var notes: [Wire.Note] = []
        /// Messages about problems of the list.
        var notices: [String] = []
        var isListChanged = false
    }

    /// The next output for a client.
    enum Delivery: Sendable {
        /// Events as text, and the number of the last event.
        case events(String, UInt64)
        /// No event for a while: send a keep-alive.
        case nothing
        case end
    }

    private static let heartbeatInterval = Duration.seconds(10)
    private static let graceBeats = 6

    init(_ downloader: Downloader, interval: Double) {
        self.downloader = downloader
        self.interval = .milliseconds(Int64(interval * 1000))
    }

    private static func newEpoch() -> String { String(UInt64.random(in: 0...UInt64.max), radix: 36) }

    // MARK: Clients

    /// Adds a client. Returns the first output, and the number of the last event in it.
    func join(lastEventID: String?) async -> (String, UInt64) {
        clients += 1
        begin()
        let parts = lastEventID?.split(separator: "-") ?? []
        if parts.count == 2, parts[0] == epoch, let number = UInt64(parts[1]),
            let events = window.events(after: number)
        {
            return (events.map { text($0) }.joined(), window.last)
        }
        var first = ""
        if lastEventID != nil { first += line("reset", window.last, "{}") }
        if let totals = try? await downloader.wireTotals, let data = Self.json(totals) {
            first += line("totals", window.last, data)
        }
        for notice in downloader.notices {
            if let data = Self.json(Wire.Notice(message: notice)) { first += line("notice", window.last, data) }
        }
        return (first, window.last)
    }

    func leave() { clients -= 1 }

    /// Waits for events after `number`, or for the next keep-alive.
    func next(after number: UInt64) async -> Delivery {
        if isClosed { return .end }
        if window.last <= number {
            nextWaiter += 1
            let waiter = nextWaiter
            await withCheckedContinuation { waiters[waiter] = $0 }
        }
        if isClosed { return .end }
        guard window.last > number else { return .nothing }
        guard let events = window.events(after: number) else {
            return .events(line("reset", window.last, "{}"), window.last)
        }
        return .events(events.map { text($0) }.joined(), window.last)
    }

    /// Closes the feed and ends all streams.
    func close() {
        isClosed = true
        collector?.cancel()
        heartbeat?.cancel()
        wake()
    }

    // MARK: Collecting

    private func begin() {
        guard collector == nil, !isClosed else { return }
        // Events since the last collection are lost: start with a new epoch.
        window = EventWindow()
        epoch = Self.newEpoch()
        collector = Task { [downloader] in
            for await event in downloader.events { collect(event) }
        }
        heartbeat = Task {
            var idle = 0
            while !Task.isCancelled {
                do { try await Task.sleep(for: Self.heartbeatInterval) } catch { return }
                wake()
                idle = clients == 0 ? idle + 1 : 0
                if idle >= Self.graceBeats { return rest() }
            }
        }
    }

    private func rest() {
        collector?.cancel()
        collector = nil
        heartbeat = nil
        batch = Batch()
    }

    private func collect(_ event: DownloadEvent) {
        switch event {
        case .added(let snapshot): note("added", snapshot.id, snapshot)
        case .changed(let snapshot):
            note(batch.pending[snapshot.id]?.name == "added" ? "added" : "changed", snapshot.id, snapshot)
        case .removed(let id): note("removed", id, nil)
        case .listChanged: batch.isListChanged = true
        case .noted(let id, let entry): batch.notes.append(Wire.Note(entry, of: id))
        case .troubled(let error): batch.notices.append(error.message)
        case .missed: return
        }
        flushSoon()
    }

    /// Sends the totals again after the settings changed.
    func settingsChanged() { if collector != nil { flushSoon() } }

    private func flushSoon() {
        guard !isFlushing else { return }
        isFlushing = true
        Task {
            try? await Task.sleep(for: interval)
            await flush()
        }
    }

    private func note(_ name: String, _ id: DownloadID, _ snapshot: DownloadSnapshot?) {
        if batch.pending.updateValue((name, snapshot), forKey: id) == nil { batch.order.append(id) }
    }

    private func flush() async {
        let sums = try? await downloader.wireTotals
        isFlushing = false
        for id in batch.order {
            guard let (name, snapshot) = batch.pending[id] else { continue }
            let data =
                snapshot.map { Self.json(Wire.Download($0)) } ?? Self.json(Wire.Name(id: id.description))
            if let data { window.put(.download(id), name, data, isAddition: name == "added") }
        }
        for note in batch.notes { if let data = Self.json(note) { window.putNote(data) } }
        for notice in batch.notices {
            if let data = Self.json(Wire.Notice(message: notice)) { window.putNote(data, name: "notice") }
        }
        if batch.isListChanged { window.put(.list, "reset", "{}") }
        batch = Batch()
        if let sums, sums != totals, let data = Self.json(sums) {
            totals = sums
            window.put(.totals, "totals", data)
        }
        wake()
    }

    private func wake() {
        let waiting = waiters
        waiters = [:]
        for continuation in waiting.values { continuation.resume() }
    }

    // MARK: Text

    private func text(_ event: EventWindow.Event) -> String { line(event.name, event.number, event.data) }

    private func line(_ name: String, _ number: UInt64, _ data: String) -> String {
        "event: \(name)\nid: \(epoch)-\(number)\ndata: \(data)\n\n"
    }

    private static func json(_ value: some Encodable) -> String? {
        (try? Answer.encode(value)).map { String(decoding: $0, as: UTF8.self) }
    }
}
