internal import Towline

/// The events of the last while, for clients that come back: of each download only the newest, so that a client gets
/// what is, and never twice what was.
struct EventWindow {
    /// What an event is about: a newer one of the same takes its place.
    enum Key: Hashable {
        case download(DownloadID)
        case note(UInt64)
        case totals
        case list
    }

    /// An event as it goes out.
    struct Event: Hashable {
        var name: String
        var number: UInt64
        var data: String
    }

    private struct Entry {
        var event: Event
        /// Who has not heard of this one is told that the download is new.
        var addition: UInt64?
    }

    private var entries: [Key: Entry] = [:]
    /// Keys by the number of their event, ascending; those that were superseded are still there.
    private var order: [(number: UInt64, key: Key)] = []
    private let capacity: Int
    /// Events up to this one are no longer known.
    private var forgotten: UInt64 = 0
    /// The number of the newest event.
    private(set) var last: UInt64 = 0

    init(capacity: Int = 20_000) { self.capacity = capacity }

    /// Adds an event; `isAddition`: it tells of a download that was not there before.
    mutating func put(_ key: Key, _ name: String, _ data: String, isAddition: Bool = false) {
        last += 1
        let addition = isAddition ? last : entries[key]?.addition
        entries[key] = Entry(event: Event(name: name, number: last, data: data), addition: addition)
        order.append((last, key))
        if order.count > 2 * capacity { compact() }
    }

    /// Adds an entry of a timeline.
    mutating func putNote(_ data: String) { put(.note(last + 1), "noted", data) }

    /// What came after the event of that number; `nil` if that is too long ago, or never was.
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
