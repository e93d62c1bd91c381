import Glibc
internal import TowlineCore
internal import TowlineEngine

/// A record of the IP addresses of each host, and of the addresses that failed within the last 60 seconds. The next
/// attempts (HTTP requests) to a host try its failed addresses last, so that a dead address delays one attempt and not
/// each of them. Confined to one engine thread, a thread that runs libcurl.
struct AddressBook {
    /// The key of an entry: a host, a port and the address family to connect with; `nil` as the family means IPv4 and
    /// IPv6.
    struct Place: Hashable, Sendable {
        let host: String
        let port: Int
        let family: ConnectionOptions.AddressFamily?

        /// The address family as getaddrinfo(3) expects it; `AF_UNSPEC` for both families.
        var systemFamily: Int32 {
            switch family {
            case .ipv4?: AF_INET
            case .ipv6?: AF_INET6
            case nil: AF_UNSPEC
            }
        }
    }

    private struct Entry {
        /// Every address of the host, in the order of the DNS lookup; empty until the lookup has ended.
        var addresses: [SocketAddress] = []
        /// The addresses of the host that failed, the latest failure last.
        var failed: [SocketAddress] = []
        var end: MonotonicTime
        var isLookedUp = false
    }

    private var entries: [Place: Entry] = [:]
    /// The lifetime of an entry. Afterwards, attempts use the order of DNS again, because a failed address may have
    /// been repaired or replaced.
    private static let life = Duration.seconds(60)
    private static let most = 256

    /// Records that `addresses` of the host `place` failed. Records no host beyond 256.
    ///
    /// - Returns: `true` if the caller must look up all addresses of the host and pass them to `learn`.
    mutating func fail(_ addresses: [SocketAddress], of place: Place) -> Bool {
        guard !addresses.isEmpty, make(place) else { return false }
        entries[place]?.failed.removeAll { addresses.contains($0) }
        entries[place]?.failed += addresses
        return needsLookup(of: place)
    }

    /// Returns whether the caller must look up the host's addresses and pass them to `learn`. Creates an entry for the
    /// host if there is no valid one, and returns `true` once per entry.
    mutating func needsLookup(of place: Place) -> Bool {
        guard make(place), entries[place]?.isLookedUp == false else { return false }
        entries[place]?.isLookedUp = true
        return true
    }

    /// Records all addresses of a host, in the order of the DNS lookup. Ignores a host without an entry.
    mutating func learn(_ addresses: [SocketAddress], of place: Place) { entries[place]?.addresses = addresses }

    /// Records that a connection to an address of a host succeeded: the address no longer counts as failed.
    mutating func succeed(_ address: SocketAddress, of place: Place) {
        entries[place]?.failed.removeAll { $0 == address }
    }

    /// Returns all addresses of a host, the failed ones last. Returns `nil` if no address failed within the last 60
    /// seconds or fewer than two addresses are known: libcurl's own order then applies.
    func order(of place: Place) -> [SocketAddress]? {
        guard !entries.isEmpty, let entry = entries[place], entry.end > .now, entry.addresses.count > 1,
            !entry.failed.isEmpty
        else { return nil }
        return sorted(entry.addresses, of: place)
    }

    /// Returns the given addresses of a host in the given order, but moves addresses that failed within the last 60
    /// seconds to the end.
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
