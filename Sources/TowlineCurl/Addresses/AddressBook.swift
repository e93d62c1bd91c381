import Glibc
internal import TowlineCore
internal import TowlineEngine

/// A record of the IP addresses of each host, and of the addresses that failed within the last 60 seconds. The next
/// attempts to a host try its failed addresses last, so that a dead address delays one attempt and not each of them.
/// Confined to one engine thread, a thread that runs libcurl.
struct AddressBook {
    /// The key under which addresses of a server are recorded: a host, a port and the address family to connect with;
    /// `nil` as the family means IPv4 and IPv6.
    struct Endpoint: Hashable, Sendable {
        let host: String
        let port: Int
        let family: ConnectionOptions.AddressFamily?

        /// The address family as getaddrinfo(3) expects it; `AF_UNSPEC` for IPv4 and IPv6.
        var systemFamily: Int32 {
            switch family {
            case .ipv4?: AF_INET
            case .ipv6?: AF_INET6
            case nil: AF_UNSPEC
            }
        }
    }

    /// The addresses of one host, those that failed recently, and the time at which the record expires.
    private struct Entry {
        /// Every address of the host, in the order of the DNS lookup; empty until the lookup has ended.
        var addresses: [SocketAddress] = []
        /// The addresses of the host where a connection failed recently, the latest failure last.
        var failed: [SocketAddress] = []
        var end: MonotonicTime
        var isLookedUp = false
    }

    private var entries: [Endpoint: Entry] = [:]
    /// The duration of a record of failed addresses of a host. Afterwards, attempts use the order of DNS again, because
    /// a failed address may have been repaired or replaced.
    private static let life = Duration.seconds(60)
    /// The maximum number of hosts with a record of addresses, so that the memory stays limited.
    private static let most = 256

    /// Records that `addresses` of the host `endpoint` failed. Records no host beyond 256.
    ///
    /// - Returns: `true` if the caller must look up all addresses of the host and pass them to `learn`.
    mutating func fail(_ addresses: [SocketAddress], of endpoint: Endpoint) -> Bool {
        guard !addresses.isEmpty, make(endpoint) else { return false }
        entries[endpoint]?.failed.removeAll { addresses.contains($0) }
        entries[endpoint]?.failed += addresses
        return needsLookup(of: endpoint)
    }

    /// Returns whether the caller must look up the host's addresses and pass them to `learn`. Creates an entry for the
    /// host if there is no valid one, and returns `true` once per entry.
    mutating func needsLookup(of endpoint: Endpoint) -> Bool {
        guard make(endpoint), entries[endpoint]?.isLookedUp == false else { return false }
        entries[endpoint]?.isLookedUp = true
        return true
    }

    /// Records all addresses of a host, in the order of the DNS lookup. Ignores a host without an entry.
    mutating func learn(_ addresses: [SocketAddress], of endpoint: Endpoint) {
        entries[endpoint]?.addresses = addresses
    }

    /// Records that a connection to an address of a host succeeded: the address no longer counts as failed.
    mutating func succeed(_ address: SocketAddress, of endpoint: Endpoint) {
        entries[endpoint]?.failed.removeAll { $0 == address }
    }

    /// Returns all addresses of a host, the failed ones last. Returns `nil` if no address failed within the last 60
    /// seconds or fewer than two addresses are known: libcurl's own order then applies.
    func order(of endpoint: Endpoint) -> [SocketAddress]? {
        guard !entries.isEmpty, let entry = entries[endpoint], entry.end > .now, entry.addresses.count > 1,
            !entry.failed.isEmpty
        else { return nil }
        return sorted(entry.addresses, of: endpoint)
    }

    /// Returns the given addresses of a host in the given order, but moves addresses that failed within the last 60
    /// seconds to the end.
    func sorted(_ addresses: [SocketAddress], of endpoint: Endpoint) -> [SocketAddress] {
        guard let entry = entries[endpoint], entry.end > .now else { return addresses }
        return addresses.filter { !entry.failed.contains($0) } + entry.failed.filter(addresses.contains)
    }

    /// Returns the addresses of a host; `nil` if they were not looked up within the last 60 seconds.
    func addresses(of endpoint: Endpoint) -> [SocketAddress]? {
        entries[endpoint].flatMap { $0.end > .now && !$0.addresses.isEmpty ? $0.addresses : nil }
    }

    private mutating func make(_ endpoint: Endpoint) -> Bool {
        if let entry = entries[endpoint], entry.end > .now { return true }
        if entries.count >= Self.most { entries = entries.filter { $0.value.end > .now } }
        guard entries.count < Self.most else { return false }
        entries[endpoint] = Entry(end: .now.advanced(by: Self.life))
        return true
    }
}
