import Glibc

/// The parallel connection attempts to the addresses of a host ("Happy Eyeballs", RFC 8305 §5). The next connection
/// attempt begins `delay` after the previous one, or immediately when one fails. The first address that connects wins.
///
/// libcurl 7.88 tries the addresses of one family one after another. The event loop (`AttemptLoop`) therefore connects
/// sockets of its own, called runners, in parallel with libcurl. If a runner connects first, it takes over the
/// descriptor of one of libcurl's sockets (dup2(2)). Confined to one engine thread, a thread that runs libcurl.
final class AddressRace {
    /// The time between the starts of two connection attempts (RFC 8305 §8: "Connection Attempt Delay").
    static let delay = Duration.milliseconds(250)
    /// The maximum number of runners (sockets of the event loop) that try to connect to one host at the same time.
    static let most = 8

    /// A socket that libcurl opened to connect to the host. The inode number distinguishes it from a later socket with
    /// the same descriptor.
    private struct Socket {
        let descriptor: Int32
        let inode: UInt64
        let address: SocketAddress
    }

    /// The sockets that libcurl opened for the host, the latest last. If a socket of the event loop (a runner) connects
    /// first, it replaces one of them.
    private var sockets: [Socket] = []
    /// The sockets of the event loop that are connecting, by descriptor, with the address of each.
    private(set) var runners: [Int32: SocketAddress] = [:]
    /// The addresses of the host that no socket has tried yet, in the order in which to try them.
    private var waiting: [SocketAddress] = []
    /// `true` once `learn` has set all addresses of the host, so that no lookup is needed.
    private(set) var isComplete = false
    /// The address of the runner (a socket of the event loop) that connected first. After `end`, the address of the
    /// connection that is used, also if it is libcurl's own; `nil` if no socket connected.
    private(set) var winner: SocketAddress?
    /// `true` after `end`: the request was sent or the attempt ended, so no further address is tried.
    private(set) var isEnded = false

    /// The addresses that libcurl or the event loop tried to connect to, successfully or not.
    var tried: [SocketAddress] { sockets.map(\.address) + runners.values + failed }
    /// The addresses where the connection attempt of a runner (a socket of the event loop) failed.
    private var failed: [SocketAddress] = []

    /// Records that libcurl is connecting a socket to an address, so that the event loop does not try this address too.
    func add(_ descriptor: Int32, _ address: SocketAddress) {
        guard let inode = SocketWatch.inode(of: descriptor) else { return }
        sockets.append(Socket(descriptor: descriptor, inode: inode, address: address))
        waiting.removeAll { $0 == address }
    }

    /// Sets the addresses of the host. The addresses that no socket has tried yet become the next ones for `start`; the
    /// address families alternate.
    func learn(_ addresses: [SocketAddress]) {
        isComplete = true
        let tried = tried
        let left = addresses.filter { !tried.contains($0) }
        // The address families alternate (RFC 8305 §4).
        let (first, others) = (left.filter { $0.family == left[0].family }, left.filter { $0.family != left[0].family })
        waiting = (0..<max(first.count, others.count)).flatMap { index in
            [first, others].compactMap { $0.indices.contains(index) ? $0[index] : nil }
        }
    }

    /// Returns whether `start` may connect to another address: one is left, and fewer than `most` runners (sockets of
    /// the event loop) are connecting.
    var hasNext: Bool { !waiting.isEmpty && runners.count < Self.most }

    /// Starts to connect a new runner (a socket of the event loop) to the next address that `isAllowed` accepts. Skips
    /// addresses that fail immediately.
    ///
    /// - Returns: the descriptor of the runner; `nil` if no address is left or `most` runners are connecting.
    func start(isAllowed: (SocketAddress) -> Bool) -> Int32? {
        while hasNext {
            let address = waiting.removeFirst()
            guard isAllowed(address), let descriptor = address.connect() else {
                failed.append(address)
                continue
            }
            runners[descriptor] = address
            return descriptor
        }
        return nil
    }

    /// Removes a runner (a socket of the event loop) whose socket is ready, because it connected or failed.
    ///
    /// - Returns: `true` if the runner is connected and has won; `false` if it failed and the caller must close its
    ///   descriptor.
    func finish(_ descriptor: Int32) -> Bool {
        guard let address = runners.removeValue(forKey: descriptor) else { return false }
        var (error, size) = (Int32(0), socklen_t(MemoryLayout<Int32>.size))
        let isConnected = getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &error, &size) == 0 && error == 0
        if isConnected { winner = address } else { failed.append(address) }
        return isConnected
    }

    /// The address that libcurl or the first connected runner (a socket of the event loop) is connected to; `nil` if no
    /// socket is connected yet.
    var connected: SocketAddress? {
        winner
            ?? sockets.first { SocketWatch.inode(of: $0.descriptor) == $0.inode && Self.hasPeer($0.descriptor) }?
            .address
    }

    private static func hasPeer(_ descriptor: Int32) -> Bool {
        var address = sockaddr()
        var size = socklen_t(MemoryLayout<sockaddr>.size)
        return getpeername(descriptor, &address, &size) == 0
    }

    /// The descriptor of the latest of libcurl's sockets that is still open, which a connected socket of the event loop
    /// (a runner) takes over; `nil` if all are closed. Compares inodes, because libcurl 7.88 closes some sockets
    /// without a callback.
    var replaceable: Int32? {
        sockets.last { SocketWatch.inode(of: $0.descriptor) == $0.inode }?.descriptor
    }

    /// Ends the parallel connection attempts and forgets the addresses that were not tried.
    ///
    /// - Returns: the descriptors of the runners (sockets of the event loop) that are still connecting, which the
    ///   caller must close.
    func end() -> [Int32] {
        defer { runners = [:] }
        winner = connected
        isEnded = true
        failed += runners.values
        waiting = []
        return Array(runners.keys)
    }
}
