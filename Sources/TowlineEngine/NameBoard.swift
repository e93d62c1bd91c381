internal import TowlineCore
import Synchronization

/// The numbers of files with the same name in a batch, given in the order of the list, no matter how fast servers are.
///
/// A name from the URL gets its number when the download begins. A name from the server gets its number with the
/// response, which waits for the responses of earlier downloads in the list.
final class NameBoard: Sendable {
    /// How a name that exists already is handled.
    struct Terms {
        let source: String
        /// `true` to skip a number whose file no download made. Otherwise the first such number is returned.
        let passesFiles: Bool
    }

    private struct Numbers {
        /// The next number to check.
        var next = 0
        /// The numbers that belong to finished downloads from other URLs.
        var passed: [(number: Int, source: PublishedSource)] = []
    }

    private struct Turns {
        /// Running downloads whose names are not decided, by their numbers in the batch.
        var undecided: Set<Int> = []
        /// Resumed when no download before `number` is undecided.
        var waiters: [(number: Int, isOver: AsyncStream<Void>.Continuation)] = []

        func isTurn(of number: Int) -> Bool { undecided.allSatisfy { $0 >= number } }
    }

    /// The number of names that are remembered. A forgotten name is found on disk.
    private static let mostNames = 100_000
    /// The longest time that a response waits for those of earlier downloads.
    private static let patience = Duration.seconds(5)

    /// The numbers by the hash of a place, which is short: a list may have millions of names.
    private let names = Mutex<[Int: Numbers]>([:])
    private let turns = Mutex(Turns())

    /// Returns the number of the next file with a name, 0 for the plain name. Each call returns another number, except
    /// for a download that is finished.
    ///
    /// - Parameter isAgain: the number of an earlier call is of no use.
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

    /// Notes that a download begins. `decided` must follow.
    func begin(_ number: Int) { turns.withLock { _ = $0.undecided.insert(number) } }

    /// Notes that the name of a download is decided, or that no download has to wait for it.
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

    /// Returns whether the names of all downloads before this one are decided.
    func isTurn(of number: Int) -> Bool { turns.withLock { $0.isTurn(of: number) } }

    /// Returns when the names of all downloads before this one are decided, when the mailbox gets a stop, or after some
    /// time.
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
    /// The place of the file with the same name and a number; 0 is the plain name.
    func numbered(_ number: Int) -> Place {
        number == 0 ? self : Place(directory: directory, name: SafeFileName.numbered(name, number))
    }
}
