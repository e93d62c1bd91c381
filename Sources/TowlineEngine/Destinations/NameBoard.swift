internal import TowlineCore
import Synchronization

/// Gives numbers to files with the same name in a batch, in the order of the list, no matter how fast servers are.
///
/// A name from the URL gets its number when the download begins. A name from the server gets its number with the
/// response, which waits for the responses of earlier downloads in the list.
final class NameBoard: Sendable {
    /// The URL of a download and its rule for files of other programs. They decide which name `NAME (N)` it gets if files
    /// with such names are on the disk.
    struct Terms {
        /// The URL of the download without secrets, which is compared with the URL of a finished file.
        let source: String
        /// `true` to skip a number whose file does not come from a download. Otherwise that number is returned, so that
        /// the download decides about the file.
        let passesFiles: Bool
    }

    /// The numbers that were given to the files of one name in one directory.
    private struct Numbers {
        /// The number to try next for a file with this name.
        var next = 0
        /// The numbers that were skipped, because finished downloads from other URLs have them.
        var passed: [(number: Int, source: PublishedSource)] = []
    }

    /// The order in which the downloads of the batch get names from the server: by their positions in the list.
    private struct Turns {
        /// The running downloads whose file names are not known yet, by their positions in the list.
        var undecided: Set<Int> = []
        /// The waiting downloads. Each is resumed when no download before its `number` is in `undecided`.
        var waiters: [(number: Int, isOver: AsyncStream<Void>.Continuation)] = []

        func isTurn(of number: Int) -> Bool { undecided.allSatisfy { $0 >= number } }
    }

    /// The maximum number of names that are remembered. The numbers of a forgotten name are found on disk.
    private static let mostNames = 100_000
    /// The longest time that a response waits for the names of earlier downloads.
    private static let patience = Duration.seconds(5)

    /// The numbers `N` that were given to files as `NAME (N)` because their name was taken. The key is the hash of
    /// directory and name, which is shorter than both: a list may have millions of names.
    private let names = Mutex<[Int: Numbers]>([:])
    private let turns = Mutex(Turns())

    /// Returns the number for the next file with the name of `place`; 0: no number. Each call for a name returns
    /// another number, except for a URL whose file is already finished. `most`: the limit, which is returned if no
    /// number is free.
    ///
    /// - Parameter isAgain: `true` if the number of an earlier call could not be used.
    func reserve(_ place: Place, _ terms: Terms, _ storage: any Storage, most: Int, isAgain: Bool = false) -> Int {
        names.withLock { names in
            if names.count >= Self.mostNames { names = [:] }
            var numbers = names[place.hashValue] ?? Numbers()
            defer { names[place.hashValue] = numbers }
            if !isAgain, let own = numbers.passed.first(where: { $0.source == terms.source }) { return own.number }
            while numbers.next < most {
                defer { numbers.next += 1 }
                let candidate = place.numbered(numbers.next)
                if storage.seemsVacant(candidate) { return numbers.next }
                // Survey for no source, so that nothing is synced: only the name matters here.
                switch try? storage.survey(named: candidate, for: "") {
                case .finished(_, let source)? where !(source == terms.source):
                    numbers.passed.append((numbers.next, source))
                case .occupied? where numbers.next > 0 || terms.passesFiles: break
                default: return numbers.next
                }
            }
            return numbers.next
        }
    }

    /// Records that the download at position `number` of the list begins. A call of `decided` must follow.
    func begin(_ number: Int) { turns.withLock { _ = $0.undecided.insert(number) } }

    /// Records that the file name of a download is known, or that no other download needs to wait for it.
    func decided(_ number: Int) {
        let ready = turns.withLock { turns in
            guard turns.undecided.remove(number) != nil, !turns.waiters.isEmpty else {
                return [AsyncStream<Void>.Continuation]()
            }
            let first = turns.undecided.min() ?? .max
            let ready = turns.waiters.filter { $0.number <= first }
            turns.waiters.removeAll { $0.number <= first }
            return ready.map(\.isOver)
        }
        for isOver in ready { isOver.finish() }
    }

    /// Returns whether the file names of all earlier downloads in the list are known.
    func isTurn(of number: Int) -> Bool { turns.withLock { $0.isTurn(of: number) } }

    /// Returns when the file names of all earlier downloads in the list are known, when the mailbox gets a stop, or
    /// after `patience`.
    nonisolated(nonsending) func turn(of number: Int, _ mailbox: TransferMailbox, _ after: DelayedCall) async {
        let (stream, isOver) = AsyncStream<Void>.makeStream()
        let waits = turns.withLock { turns in
            guard !turns.isTurn(of: number) else { return false }
            turns.waiters.append((number, isOver))
            return true
        }
        guard waits else { return }
        mailbox.whenStopped { isOver.finish() }
        after(Self.patience) { isOver.finish() }
        for await _ in stream {}
        mailbox.whenStopped(nil)
        turns.withLock { turns in turns.waiters.removeAll { $0.number == number } }
    }
}

extension Place {
    /// Returns the place of the file with the same name and a number; 0: the name without a number.
    func numbered(_ number: Int) -> Place {
        number == 0 ? self : Place(directory: directory, name: SafeFileName.numbered(name, number))
    }
}
