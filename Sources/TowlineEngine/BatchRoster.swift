internal import TowlineCore
import Synchronization

/// The running downloads of a batch. A list may name one download twice, with the same URL and target. The second entry
/// then waits for the first and finds the file, instead of failing because the destination is busy.
final class BatchRoster: Sendable {
    /// An entry of the list. A class, because options take half a KiB and are passed by reference.
    final class Item: Sendable {
        let number: Int
        let options: DownloadOptions
        /// The number of the file among those with the same name from the URL; 0: the plain name. Set before the
        /// download begins.
        let nameNumber = Atomic<Int>(0)

        init(number: Int, options: DownloadOptions) {
            self.number = number
            self.options = options
        }
    }

    /// An entry that waits for a running entry with the same download.
    struct Repeat: Sendable {
        let item: Item
        /// The slot in the batch, if the entry keeps the slot while it waits; otherwise `nil`.
        var slot: BatchSlots.Slot?
    }

    /// A running entry.
    private struct Running {
        let item: Item
        let hash: Int
        var mailbox: TransferMailbox?
        /// The waiting entries with the same download, in the order of the list.
        var repeats: [Repeat] = []
    }

    /// The most entries that wait for one entry without a slot. Further ones keep their slots, so that the list is read
    /// no faster than it is processed.
    private static let mostWaiting = 1000

    /// The running entries: too few for a hash table to pay off.
    private let running = Mutex<[Running]>([])

    /// Adds an entry that is about to run.
    ///
    /// - Returns: `false` if an entry with the same download runs. The task of that entry gets this one from `next`,
    ///   with its slot if many wait already.
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

    /// Notes the mailbox of the transfer that runs for an entry.
    func reach(_ item: Item, by mailbox: TransferMailbox) {
        running.withLock { running in
            guard let index = running.firstIndex(where: { $0.item === item }) else { return }
            running[index].mailbox = mailbox
        }
    }

    /// Returns the next entry with the same download, after the transfer of an entry has ended.
    ///
    /// - Returns: the entry that waited the longest; `nil` if none waits: the ended entry is then removed.
    func next(after item: Item) -> Repeat? {
        running.withLock { running in
            guard let index = running.firstIndex(where: { $0.item === item }) else { return nil }
            guard running[index].repeats.isEmpty else { return running[index].repeats.removeFirst() }
            running.swapAt(index, running.count - 1)
            running.removeLast()
            return nil
        }
    }

    /// The mailboxes of the running transfers.
    var mailboxes: [TransferMailbox] { running.withLock { $0.compactMap(\.mailbox) } }
}
