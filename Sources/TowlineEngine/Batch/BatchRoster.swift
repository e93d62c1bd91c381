internal import TowlineCore
import Synchronization

/// The running downloads of a batch. A list may name one download twice, with the same URL and target. The second entry
/// then waits for the first and finds the file, instead of failing because the destination is busy.
final class BatchRoster: Sendable {
    /// An entry of the batch's list: one download. It is a class, because its options take half a KiB and are passed by
    /// reference.
    final class Item: Sendable {
        let number: Int
        let options: DownloadOptions
        /// The number that this file gets among those of the batch with the same name in their URLs, as in `NAME (1)`;
        /// 0: the name without a number. Set before the download begins.
        let nameNumber = Atomic<Int>(0)
        /// `true` if the numbered name was found unused when the number was set, so that the first request need not
        /// look it up again.
        let isNameVacant = Atomic<Bool>(false)

        init(number: Int, options: DownloadOptions) {
            self.number = number
            self.options = options
        }
    }

    /// An entry of the batch's list that waits, because a running entry has the same URL and target.
    struct Repeat: Sendable {
        let item: Item
        /// The entry's right to run in the batch (a slot), if it keeps that right while it waits; otherwise `nil`.
        var slot: BatchSlots.Slot?
    }

    /// An entry of the batch's list whose download runs, with the entries for the same URL and target that wait for it.
    private struct Running {
        let item: Item
        /// The hash of the URL, which is compared first to find an entry with the same URL and target.
        let hash: Int
        /// The event queue of the running transfer, through which it can be stopped; `nil` before it begins.
        var mailbox: TransferMailbox?
        /// The entries for the same URL and target that wait until this one has ended, in the order of the list.
        var repeats: [Repeat] = []
    }

    /// The maximum number of entries that may wait for a running entry without a slot (the right to run). More of them
    /// keep their slots, so that the list is not read faster than its downloads run.
    private static let mostWaiting = 1000

    /// The entries whose downloads run. An array, because they are too few for a hash table to pay off.
    private let running = Mutex<[Running]>([])

    /// Adds an entry whose download is about to run in `slot`, the right to run in the batch.
    ///
    /// - Returns: `false` if an entry with the same URL and target runs. The task of the running entry then also runs
    ///   this one, which `next` returns. Its slot is released, unless too many entries wait already.
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

    /// Records the event queue of the transfer that runs for an entry, through which `BatchRunner.stop` can stop it.
    func reach(_ item: Item, by mailbox: TransferMailbox) {
        running.withLock { running in
            guard let index = running.firstIndex(where: { $0.item === item }) else { return }
            running[index].mailbox = mailbox
        }
    }

    /// Returns the next entry with the same URL and target as `item`, whose transfer has ended, so that it can run.
    ///
    /// - Returns: the entry that waited the longest; `nil` if none waits: `item` is then removed from the running ones.
    func next(after item: Item) -> Repeat? {
        running.withLock { running in
            guard let index = running.firstIndex(where: { $0.item === item }) else { return nil }
            guard running[index].repeats.isEmpty else { return running[index].repeats.removeFirst() }
            running.swapAt(index, running.count - 1)
            running.removeLast()
            return nil
        }
    }

    /// The event queues of the running transfers, through which `BatchRunner.stop` stops them.
    var mailboxes: [TransferMailbox] { running.withLock { $0.compactMap(\.mailbox) } }
}
