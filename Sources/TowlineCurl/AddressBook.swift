import Glibc
internal import TowlineCore
internal import TowlineEngine

/// The addresses that failed lately, by host. The next attempts try these addresses last, so that a dead address delays
/// one attempt and not each of them. Confined to its engine thread.
struct AddressBook {
    /// A host, port and address family whose addresses the book records.
    struct Place: Hashable, Sendable {
        let host: String
        let port: Int
        let family: ConnectionOptions.AddressFamily?

        /// The address family as getaddrinfo(3) expects it.
        var systemFamily: Int32 {
            switch family {
            case .ipv4?: AF_INET
            case .ipv6?: AF_INET6
            case nil: AF_UNSPEC
            }
        }
    }

    private struct Entry {
        /// Every address of the host; empty until they are looked up.
        var addresses: [SocketAddress] = []
        /// The addresses that failed, the latest failure last.
        var failed: [SocketAddress] = []
        var end: MonotonicTime
        var isLookedUp = false
    }

    private var entries: [Place: Entry] = [:]
    /// The lifetime of an entry. After it, Towline trusts DNS again: an address may be repaired or replaced.
    private static let life = Duration.seconds(60)
    private static let most = 256

    /// Records that addresses of a host failed.
    ///
    /// - Returns: `true` if the caller must look up the host's addresses.
    mutating func fail(_ addresses: [SocketAddress], of place: Place) -> Bool {
        guard !addresses.isEmpty, make(place) else { return false }
        entries[place]?.failed.removeAll { addresses.contains($0) }
        entries[place]?.failed += addresses
        return needsLookup(of: place)
    }

    /// Returns whether the caller must look up the host's addresses. Returns `true` at most once per entry.
    mutating func needsLookup(of place: Place) -> Bool {
        guard make(place), entries[place]?.isLookedUp == false else { return false }
        entries[place]?.isLookedUp = true
        return true
    }

    /// Records all addresses of a host, as the lookup returned them.
    mutating func learn(_ addresses: [SocketAddress], of place: Place) { entries[place]?.addresses = addresses }

    /// Records that an address of a host works.
    mutating func succeed(_ address: SocketAddress, of place: Place) {
        entries[place]?.failed.removeAll { $0 == address }
    }

    /// Returns the addresses of a host that has several and one that failed lately: failed addresses last. Otherwise
    /// `nil`.
    func order(of place: Place) -> [SocketAddress]? {
        guard !entries.isEmpty, let entry = entries[place], entry.end > .now, entry.addresses.count > 1,
            !entry.failed.isEmpty
        else { return nil }
        return sorted(entry.addresses, of: place)
    }

    /// Returns the given addresses of a host in their order, but moves addresses that failed lately to the end.
    func sorted(_ addresses: [SocketAddress], of place: Place) -> [SocketAddress] {
        guard let entry = entries[place], entry.end > .now else { return addresses }
        return addresses.filter { !entry.failed.contains($0) } + entry.failed.filter(addresses.contains)
    }

    /// Returns the addresses of a host; `nil` if they were not looked up within the last 60 seconds.
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
