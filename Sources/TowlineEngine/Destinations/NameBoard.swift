internal import TowlineCore
import Synchronization

/// Gives numbers to files with the same name in a batch (`NAME`, `NAME (1)`), in the order of the list, no matter how
/// fast servers are.
///
/// A name from the URL gets its number when the download begins. A name from the server gets its number with the
/// response, which waits for the responses of earlier downloads in the list.
final class NameBoard: Sendable {
    /// The properties of a download that decide which number its file gets if files named `NAME (N)` exist on disk.
    struct Terms {
        /// The URL of the download, which is compared with the URL of a finished file.
        let link: LinkIdentity
        /// `true` to skip a number if a file that is not a finished download has the numbered name. Otherwise that
        /// number is used, and the download decides about the file.
        let passesFiles: Bool
    }

    /// The numbers that files with the same name in one directory got in this batch, as in `NAME (1)`.
    private struct Numbers {
        /// The number to try next for another file with this name, as in `NAME (1)`.
        var next = 0
        /// The numbers that were skipped because finished downloads from other URLs have them, with the URLs of those
        /// files.
        var passed: [(number: Int, source: StoredSource)] = []
    }

    /// The order in which the downloads of the batch get names from the server: by their positions in the list.
    private struct Turns {
        /// The running downloads whose file names are not known yet, by their positions in the list.
        var undecided: Set<Int> = []
        /// The downloads that wait for their turn, with their positions in the list. Each continues when no earlier
        /// position is in `undecided`.
        var waiters: [(number: Int, isOver: AsyncStream<Void>.Continuation)] = []

        func isTurn(of number: Int) -> Bool { undecided.allSatisfy { $0 >= number } }
    }

    /// The maximum number of file names whose used numbers are remembered. For a forgotten name, they are found on
    /// disk.
    private static let mostNames = 100_000
    /// The longest time that a download waits until the file names of earlier downloads in the list are known.
    private static let patience = Duration.seconds(5)

    /// The numbers that were given to files with equal names, as in `NAME (1)`. The key is the hash of directory and
    /// name, which is shorter than both: a list may have millions of names.
    private let names = Mutex<[Int: Numbers]>([:])
    private let turns = Mutex(Turns())

    /// The number of a file among those with the same name, as in `NAME (1)`; 0: the name without a number.
    struct Reservation {
        let number: Int
        /// `true` if the numbered name was found unused (`Storage.seemsVacant`).
        var isVacant = false
    }

    /// Returns the number for the next file with the name of `place`, as in `NAME (1)`; `most` if all are taken. Each
    /// call for a name returns another number, except for a URL whose file is already finished.
    ///
    /// - Parameter isAgain: `true` if the number of an earlier call could not be used.
    func reserve(
        _ place: Place, _ terms: Terms, _ storage: any Storage, most: Int, isAgain: Bool = false
    ) -> Reservation {
        names.withLock { names in
            if names.count >= Self.mostNames { names = [:] }
            var numbers = names[place.hashValue] ?? Numbers()
            defer { names[place.hashValue] = numbers }
            if !isAgain, let own = numbers.passed.first(where: { $0.source.relation(to: terms.link) == .same }) {
                return Reservation(number: own.number)
            }
            while numbers.next < most {
                defer { numbers.next += 1 }
                let candidate = place.numbered(numbers.next)
                if storage.seemsVacant(candidate) { return Reservation(number: numbers.next, isVacant: true) }
                // Survey for no source, so that nothing is synced: only the name matters here.
                switch try? storage.survey(named: candidate, for: "") {
                case .finished(_, let source)? where source.relation(to: terms.link) == .different:
                    numbers.passed.append((numbers.next, source))
                case .occupied? where numbers.next > 0 || terms.passesFiles: break
                default: return Reservation(number: numbers.next)
                }
            }
            return Reservation(number: numbers.next)
        }
    }

    /// Records that the download at position `number` of the list begins, so that later downloads wait until `decided`
    /// is called for it.
    func begin(_ number: Int) { turns.withLock { _ = $0.undecided.insert(number) } }

    /// Records that the file name of the download at position `number` of the list is known, or that later downloads
    /// need not wait for it.
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

    /// Returns whether the file names of all downloads before position `number` of the list are known.
    func isTurn(of number: Int) -> Bool { turns.withLock { $0.isTurn(of: number) } }

    /// Waits until the file names of all downloads before position `number` of the list are known, at most `patience`
    /// (5 s). Returns early if the event queue `mailbox` of the transfer gets a stop event.
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
    /// Returns the location of a file with the same name and the number added, as in `NAME (1)`; 0: the name without a
    /// number.
    func numbered(_ number: Int) -> Place {
        number == 0 ? self : Place(directory: directory, name: SafeFileName.numbered(name, number))
    }
}
