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

    private struct Running: Sendable {
        let hash: Int
        let item: Item
        var mailbox: TransferMailbox?
        /// The same once more, in the list's order.
        var repeats: [Item] = []
    }

    /// So many that wait for one have given up their places; the list is read no faster than it is worked off.
    private static let mostWaiting = 1000

    /// In the order in which they began; few, and never worth a table.
    private let running = Mutex<[Running]>([])

    /// Takes an entry whose turn has come.
    ///
    /// - Returns: `false` if the same download is being run: whoever runs it gets this one by `next`, with its slot where
    ///   many wait already.
    func begin(_ item: Item, _ slot: BatchSlots.Slot) -> Bool {
        let hash = item.download.url.pathAndQuery.hashValue
        return running.withLock { running in
            let same = running.firstIndex {
                $0.hash == hash && $0.item.download.url == item.download.url
                    && $0.item.download.target == item.download.target
            }
            guard let same else {
                running.append(Running(hash: hash, item: item))
                return true
            }
            var item = item
            if running[same].repeats.count >= Self.mostWaiting { item.slot = slot } else { slot.unused() }
            running[same].repeats.append(item)
            return false
        }
    }

    /// Where to reach the transfer that runs for an entry that began.
    func reach(_ number: Int, by mailbox: TransferMailbox) {
        running.withLock { running in
            guard let index = running.firstIndex(where: { $0.item.number == number }) else { return }
            running[index].mailbox = mailbox
        }
    }

    /// The transfer of an entry has ended.
    ///
    /// - Returns: what asked for the same meanwhile; `nil`: nothing, and the entry is gone.
    func next(after number: Int) -> Item? {
        running.withLock { running in
            guard let index = running.firstIndex(where: { $0.item.number == number }) else { return nil }
            guard running[index].repeats.isEmpty else { return running[index].repeats.removeFirst() }
            running.remove(at: index)
            return nil
        }
    }

    /// Every transfer that runs.
    var mailboxes: [TransferMailbox] { running.withLock { $0.compactMap(\.mailbox) } }
}
