internal import TowlineCore
import Synchronization

/// What a batch is at. A list may name one download twice: the same URL to the same place is the same download, so the
/// second waits for the first and finds the file, instead of being refused its place.
final class BatchRoster: Sendable {
    /// An entry of the list, in its turn. Options take half a KiB: they are handed around by reference.
    final class Item: Sendable {
        let number: Int
        let options: DownloadOptions
        /// The number of the file among those with the name that the URL gives. Set before the download begins.
        let nameNumber = Atomic<Int>(0)

        init(number: Int, options: DownloadOptions) {
            self.number = number
            self.options = options
        }
    }

    /// An entry that waits for the one that is the same download.
    struct Repeat: Sendable {
        let item: Item
        /// Its place in the batch, if it keeps that while it waits.
        var slot: BatchSlots.Slot?
    }

    /// An entry that runs.
    private struct Running {
        let item: Item
        let hash: Int
        var mailbox: TransferMailbox?
        /// The same once more, in the list's order.
        var repeats: [Repeat] = []
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
        let hash = item.options.url.hashValue
        return running.withLock { running in
            let same = running.firstIndex {
                $0.hash == hash && $0.item.options.url == item.options.url
                    && $0.item.options.target == item.options.target
            }
            guard let same else {
                running.append(Running(item: item, hash: hash))
                return true
            }
            var waiting = Repeat(item: item)
            if running[same].repeats.count >= Self.mostWaiting { waiting.slot = slot } else { slot.unused() }
            running[same].repeats.append(waiting)
            return false
        }
    }

    /// Where to reach the transfer that runs for an entry that began.
    func reach(_ item: Item, by mailbox: TransferMailbox) {
        running.withLock { running in
            guard let index = running.firstIndex(where: { $0.item === item }) else { return }
            running[index].mailbox = mailbox
        }
    }

    /// The transfer of an entry has ended.
    ///
    /// - Returns: what asked for the same meanwhile; `nil`: nothing, and the entry is gone.
    func next(after item: Item) -> Repeat? {
        running.withLock { running in
            guard let index = running.firstIndex(where: { $0.item === item }) else { return nil }
            guard running[index].repeats.isEmpty else { return running[index].repeats.removeFirst() }
            running.swapAt(index, running.count - 1)
            running.removeLast()
            return nil
        }
    }

    /// Every transfer that runs.
    var mailboxes: [TransferMailbox] { running.withLock { $0.compactMap(\.mailbox) } }
}
