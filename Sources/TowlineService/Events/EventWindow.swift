internal import Towline

/// The recent events, for clients that reconnect. Keeps only the newest event of each download, so that a client gets
/// the current state once.
struct EventWindow {
    /// The subject of an event. A newer event replaces an older one with the same key.
    enum Key: Hashable {
        case download(DownloadID)
        case note(UInt64)
        case totals
        case list
    }

    /// An event in the form in which it is sent.
    struct Event: Hashable {
        var name: String
        var number: UInt64
        var data: String
    }

    private struct Entry {
        var event: Event
        /// Number of the event that added the download. For clients without this event, the download is new.
        var addition: UInt64?
    }

    private var entries: [Key: Entry] = [:]
    /// Keys by event number, ascending, including replaced events.
    private var order: [(number: UInt64, key: Key)] = []
    private let capacity: Int
    /// Events up to this number were dropped.
    private var forgotten: UInt64 = 0
    /// Number of the newest event.
    private(set) var last: UInt64 = 0

    init(capacity: Int = 20_000) { self.capacity = capacity }

    /// Adds an event; `isAddition` marks the first event of a download.
    mutating func put(_ key: Key, _ name: String, _ data: String, isAddition: Bool = false) {
        last += 1
        let addition = isAddition ? last : entries[key]?.addition
        entries[key] = Entry(event: Event(name: name, number: last, data: data), addition: addition)
        order.append((last, key))
        if order.count > 2 * capacity { compact() }
    }

    /// Adds an event that no later event replaces: by default, of a timeline entry.
    mutating func putNote(_ data: String, name: String = "noted") { put(.note(last + 1), name, data) }

    /// Returns the events after `number`; `nil` if older events were dropped or the number is unknown.
    func events(after number: UInt64) -> [Event]? {
        guard number >= forgotten, number <= last else { return nil }
        var low = 0
        var high = order.count
        while low < high {
            let middle = (low + high) / 2
            if order[middle].number <= number { low = middle + 1 } else { high = middle }
        }
        return order[low...].compactMap { place, key in
            guard let entry = entries[key], entry.event.number == place else { return nil }
            var event = entry.event
            if event.name == "changed", let addition = entry.addition, addition > number { event.name = "added" }
            return event
        }
    }

    private mutating func compact() {
        order.removeAll { number, key in entries[key]?.event.number != number }
        guard order.count > capacity else { return }
        let surplus = order.count - capacity
        for (number, key) in order.prefix(surplus) {
            forgotten = number
            entries[key] = nil
        }
        order.removeFirst(surplus)
    }
}
