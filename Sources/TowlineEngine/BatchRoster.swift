internal import TowlineCore
import Synchronization

/// What a batch is at. A list may name one download twice: the same URL to the same place is the same download, so the
/// second waits for the first and finds the file, instead of being refused its place.
final class BatchRoster: Sendable {
    /// An entry of the list, in its turn.
    struct Item: Sendable {
        let number: Int
        let download: DownloadOptions
        /// Its place in the batch, if it keeps that while it waits.
        var slot: BatchSlots.Slot?
    }

    /// An entry that runs. What is asked of all of them stands in front: options take half a KiB.
    private struct Running {
        let number: Int
        let hash: Int
        let entry: Entry
    }

    private final class Entry {
        let download: DownloadOptions
        var mailbox: TransferMailbox?
        /// The same once more, in the list's order.
        var repeats: [Item] = []

        init(_ download: DownloadOptions) { self.download = download }
    }

    /// So many that wait for one have given up their places; the list is read no faster than it is worked off.
    private static let mostWaiting = 1000

    /// Few, and never worth a table.
    private let running = Mutex<[Running]>([])

    /// Takes an entry whose turn has come.
    ///
    /// - Returns: `false` if the same download is being run: whoever runs it gets this one by `next`, with its slot where
    ///   many wait already.
    func begin(_ item: Item, _ slot: BatchSlots.Slot) -> Bool {
        let hash = item.download.url.pathAndQuery.hashValue
        return running.withLock { running in
            let same = running.firstIndex {
                $0.hash == hash && $0.entry.download.url == item.download.url
                    && $0.entry.download.target == item.download.target
            }
            guard let same = same.map({ running[$0].entry }) else {
                running.append(Running(number: item.number, hash: hash, entry: Entry(item.download)))
                return true
            }
            var item = item
            if same.repeats.count >= Self.mostWaiting { item.slot = slot } else { slot.unused() }
            same.repeats.append(item)
            return false
        }
    }

    /// Where to reach the transfer that runs for an entry that began.
    func reach(_ number: Int, by mailbox: TransferMailbox) {
        running.withLock { running in
            running.first { $0.number == number }?.entry.mailbox = mailbox
        }
    }

    /// The transfer of an entry has ended.
    ///
    /// - Returns: what asked for the same meanwhile; `nil`: nothing, and the entry is gone.
    func next(after number: Int) -> Item? {
        running.withLock { running in
            guard let index = running.firstIndex(where: { $0.number == number }) else { return nil }
            let entry = running[index].entry
            guard entry.repeats.isEmpty else { return entry.repeats.removeFirst() }
            running.swapAt(index, running.count - 1)
            running.removeLast()
            return nil
        }
    }

    /// Every transfer that runs.
    var mailboxes: [TransferMailbox] { running.withLock { $0.compactMap(\.entry.mailbox) } }
}
