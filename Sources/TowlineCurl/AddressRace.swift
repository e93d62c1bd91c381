import Glibc

/// The addresses that an attempt connects to, one after another (RFC 8305 §5): the next one begins `delay` after the
/// last, or at once when one fails, and the first that connects wins.
///
/// libcurl 7.88 tries both families at the same time, but the addresses of one family one after another, each for half
/// of the time that is left. So the loop connects to further addresses beside libcurl, and gives the socket that
/// connects first the descriptor of one of libcurl's sockets. Confined to its engine thread.
final class AddressRace {
    /// RFC 8305 §8: "Connection Attempt Delay".
    static let delay = Duration.milliseconds(250)
    /// So many addresses at the same time at most.
    static let most = 8

    /// A socket. The inode distinguishes it from a later one with the same descriptor.
    private struct Socket {
        let descriptor: Int32
        let inode: UInt64
        let address: SocketAddress
    }

    /// libcurl's sockets, the latest last.
    private var sockets: [Socket] = []
    /// The loop's sockets and their addresses.
    private(set) var runners: [Int32: SocketAddress] = [:]
    /// Addresses to begin with.
    private var waiting: [SocketAddress] = []
    /// All addresses are known.
    private(set) var isComplete = false
    /// The address of the runner that won, and once the race is over that of the connection.
    private(set) var winner: SocketAddress?
    /// The request was sent, or the attempt ended.
    private(set) var isEnded = false

    /// The addresses that were tried.
    var tried: [SocketAddress] { sockets.map(\.address) + runners.values + failed }
    private var failed: [SocketAddress] = []

    /// libcurl connects.
    func add(_ descriptor: Int32, _ address: SocketAddress) {
        guard let inode = SocketWatch.inode(of: descriptor) else { return }
        sockets.append(Socket(descriptor: descriptor, inode: inode, address: address))
        waiting.removeAll { $0 == address }
    }

    /// Takes the addresses of the host over.
    func learn(_ addresses: [SocketAddress]) {
        isComplete = true
        let tried = tried
        let left = addresses.filter { !tried.contains($0) }
        // The families take turns (RFC 8305 §4).
        let (first, others) = (left.filter { $0.family == left[0].family }, left.filter { $0.family != left[0].family })
        waiting = (0..<max(first.count, others.count)).flatMap { index in
            [first, others].compactMap { $0.indices.contains(index) ? $0[index] : nil }
        }
    }

    /// Returns whether an address is left to begin with.
    var hasNext: Bool { !waiting.isEmpty && runners.count < Self.most }

    /// Begins with the next address that can be reached.
    ///
    /// - Returns: the descriptor; `nil` if no address is left.
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

    /// Takes a runner that is ready out.
    ///
    /// - Returns: whether it is connected; if not, it is to be closed.
    func finish(_ descriptor: Int32) -> Bool {
        guard let address = runners.removeValue(forKey: descriptor) else { return false }
        var (error, size) = (Int32(0), socklen_t(MemoryLayout<Int32>.size))
        let isConnected = getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &error, &size) == 0 && error == 0
        if isConnected { winner = address } else { failed.append(address) }
        return isConnected
    }

    /// The address that libcurl is connected to, if it is.
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

    /// The latest of libcurl's sockets that is still open. libcurl 7.88 closes some without a callback.
    var replaceable: Int32? {
        sockets.last { SocketWatch.inode(of: $0.descriptor) == $0.inode }?.descriptor
    }

    /// Ends the race.
    ///
    /// - Returns: the remaining runners, which are to be closed.
    func end() -> [Int32] {
        defer { runners = [:] }
        winner = connected
        isEnded = true
        failed += runners.values
        waiting = []
        return Array(runners.keys)
    }
}
