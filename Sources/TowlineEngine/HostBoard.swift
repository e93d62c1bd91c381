package import TowlineCore
import Synchronization

/// What all downloads of a process know of a host: until when it wants to be left alone, and how many connections
/// it allows (DESIGN.md §5). Shared by every transfer of an assembly.
package final class HostBoard: Sendable {
    private struct Entry {
        var notBefore: Duration?
        var ceiling: Int?
        var ceilingEnd = Duration.zero
    }

    /// A host that refused a connection in a bad hour is not spared for ever: after this time it is tried again.
    package static let ceilingLife = Duration.seconds(3600)

    private let entries = Mutex<[HTTPURL.Origin: Entry]>([:])

    private let clock: @Sendable () -> Duration

    /// An empty board.
    package convenience init() { self.init { MonotonicClock.now } }

    init(clock: @escaping @Sendable () -> Duration) { self.clock = clock }

    /// Writes down what a transfer found out.
    package func record(_ report: HostReport, of origin: HTTPURL.Origin) {
        entries.withLock { entries in
            var entry = entries[origin] ?? Entry()
            switch report {
            case .leaveAlone(let duration):
                entry.notBefore = max(entry.notBefore ?? .zero, clock() + duration)
            case .connections(let count):
                let now = clock()
                let known = entry.ceilingEnd > now ? entry.ceiling : nil
                entry.ceiling = max(1, min(known ?? count, count))
                entry.ceilingEnd = now + Self.ceilingLife
            }
            entries[origin] = entry
        }
    }

    /// The connections that hosts allow, of all where that is known.
    package var ceilings: [HTTPURL.Origin: Int] {
        let now = clock()
        return entries.withLock { $0.filter { $0.value.ceilingEnd > now }.compactMapValues(\.ceiling) }
    }

    /// Until when the host wants to be left alone.
    func notBefore(_ origin: HTTPURL.Origin) -> Duration? { entries.withLock { $0[origin]?.notBefore } }

    /// How long it still wants to be left alone; `nil` if it does not.
    package func wait(of origin: HTTPURL.Origin) -> Duration? {
        notBefore(origin).map { $0 - clock() }.flatMap { $0 > .zero ? $0 : nil }
    }

    /// The connections it allows, where that is known.
    package func ceiling(_ origin: HTTPURL.Origin) -> Int? {
        let now = clock()
        return entries.withLock { $0[origin].flatMap { $0.ceilingEnd > now ? $0.ceiling : nil } }
    }
}
