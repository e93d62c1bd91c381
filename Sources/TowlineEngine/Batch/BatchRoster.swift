internal import TowlineCore
import Synchronization

/// The running downloads of a batch. A list may name one download twice, with the same URL and target. The second entry
/// then waits for the first and finds the file, instead of failing because the destination is busy.
final class BatchRoster: Sendable {
    /// An entry of the list: one download. A class, because options take half a KiB and are passed by reference.
    final class Item: Sendable {
        let number: Int
        let options: DownloadOptions
        /// The number of the file among those of the batch with the same name from the URL; 0: the name without a
        /// number. Set before the download begins.
        let nameNumber = Atomic<Int>(0)

        init(number: Int, options: DownloadOptions) {
            self.number = number
            self.options = options
        }
    }

    /// An entry of the batch's list that waits, because a running entry has the same URL and target.
    struct Repeat: Sendable {
        let item: Item
        /// The right to run in the batch, if the entry keeps it while it waits; otherwise `nil`.
        var slot: BatchSlots.Slot?
    }

    /// An entry of the batch's list whose download runs, with the equal entries that wait for it.
    private struct Running {
        let item: Item
        let hash: Int
        var mailbox: TransferMailbox?
        /// The entries that wait for this one, with the same URL and target, in the order of the list.
        var repeats: [Repeat] = []
    }

    /// The maximum number of repeated entries that wait for one entry without a slot (the right to run). Further ones
    /// keep their slots, so that the list is read no faster than it is processed.
    private static let mostWaiting = 1000

    /// The entries whose downloads run: too few for a hash table to pay off.
    private let running = Mutex<[Running]>([])

    /// Adds an entry whose download is about to run in `slot`.
    ///
    /// - Returns: `false` if an entry with the same URL and target runs. The task of that entry then runs this one,
    ///   which it gets from `next`. If many wait already, this one keeps its slot; otherwise the slot is released.
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

    /// Records the mailbox of the transfer that runs for an entry, so that it can be stopped.
    func reach(_ item: Item, by mailbox: TransferMailbox) {
        running.withLock { running in
            guard let index = running.firstIndex(where: { $0.item === item }) else { return }
            running[index].mailbox = mailbox
        }
    }

    /// Returns the next waiting entry with the same URL and target, after the transfer of an entry has ended.
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

    /// The mailboxes of the running transfers, through which they can be stopped.
    var mailboxes: [TransferMailbox] { running.withLock { $0.compactMap(\.mailbox) } }
}
