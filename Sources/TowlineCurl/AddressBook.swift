import Glibc
internal import TowlineCore
internal import TowlineEngine

/// The addresses of hosts that failed lately. The next attempts try them last, so that a dead address delays one
/// attempt and not each of them. Confined to its engine thread.
struct AddressBook {
    /// A host whose addresses are of interest.
    struct Place: Hashable, Sendable {
        let host: String
        let port: Int
        let family: ConnectionOptions.AddressFamily?

        /// The family as getaddrinfo(3) takes it.
        var systemFamily: Int32 {
            switch family {
            case .ipv4?: AF_INET
            case .ipv6?: AF_INET6
            case nil: AF_UNSPEC
            }
        }
    }

    private struct Entry {
        /// All addresses, once they are known.
        var addresses: [SocketAddress] = []
        /// The last failure comes last.
        var failed: [SocketAddress] = []
        var end: MonotonicTime
        var isLookedUp = false
    }

    private var entries: [Place: Entry] = [:]
    /// After this time DNS is believed again: an address may be repaired or replaced.
    private static let life = Duration.seconds(60)
    private static let most = 256

    /// An address of a host failed.
    ///
    /// - Returns: whether the host's addresses are to be looked up.
    mutating func fail(_ addresses: [SocketAddress], of place: Place) -> Bool {
        guard !addresses.isEmpty, make(place) else { return false }
        entries[place]?.failed.removeAll { addresses.contains($0) }
        entries[place]?.failed += addresses
        return needsLookup(of: place)
    }

    /// Returns whether the host's addresses are to be looked up, which the caller then does.
    mutating func needsLookup(of place: Place) -> Bool {
        guard make(place), entries[place]?.isLookedUp == false else { return false }
        entries[place]?.isLookedUp = true
        return true
    }

    /// Notes the addresses of a host.
    mutating func learn(_ addresses: [SocketAddress], of place: Place) { entries[place]?.addresses = addresses }

    /// An address of a host works.
    mutating func succeed(_ address: SocketAddress, of place: Place) {
        entries[place]?.failed.removeAll { $0 == address }
    }

    /// The addresses of a host if one of several failed lately, those that failed last; `nil` otherwise.
    func order(of place: Place) -> [SocketAddress]? {
        guard !entries.isEmpty, let entry = entries[place], entry.end > .now, entry.addresses.count > 1,
            !entry.failed.isEmpty
        else { return nil }
        return sorted(entry.addresses, of: place)
    }

    /// Returns addresses of a host in the given order, but those that failed lately last.
    func sorted(_ addresses: [SocketAddress], of place: Place) -> [SocketAddress] {
        guard let entry = entries[place], entry.end > .now else { return addresses }
        return addresses.filter { !entry.failed.contains($0) } + entry.failed.filter(addresses.contains)
    }

    /// The addresses of a host that were looked up lately.
    func addresses(of place: Place) -> [SocketAddress]? {
        entries[place].flatMap { $0.end > .now && !$0.addresses.isEmpty ? $0.addresses : nil }
    }

    private mutating func make(_ place: Place) -> Bool {
        if let entry = entries[place], entry.end > .now { return true }
        if entries.count >= Self.most { entries = entries.filter { $0.value.end > .now } }
        guard entries.count < Self.most else { return false }
        entries[place] = Entry(end: .now.advanced(by: Self.life))
        return true
    }
}
