import CCurl
import Glibc

/// Records which events the sockets of an engine thread are watched for, and when gathered sends leave.
///
/// Between two requests libcurl has a connection watched no more, and with the next for the same as before. A connection
/// therefore stays with the kernel meanwhile, which saves three system calls for each small file; if something happens on
/// it, which an idle one does at its end, it goes.
///
/// Of a socket that is closed before it was connected libcurl does not tell (7.88.0 to 8.1.2, curl/curl#11439), and its number may
/// be a resolver's next. So a socket counts as a connection from the first time that it is to be read from, if it is the one
/// then that was made.
///
/// Confined to its engine thread.
final class SocketWatch {
    private struct Socket {
        /// The inode of what was made for a connection, until it is one.
        var made: UInt64?
        /// A connection, whose end is told: no other socket may stay once nobody asks about it.
        var isConnection = false
        /// What the kernel was told.
        var known: EventPoll.Interest = []
        var tag: UInt32 = 0
        /// Whether libcurl wants to hear of it.
        var isWanted = false
    }

    private let poll: EventPoll
    /// By descriptor.
    private var sockets: [Socket] = []
    /// Idle connections that something happened on.
    private var disturbed: Set<Int32> = []
    /// Descriptors whose sends wait for `sendGathered`, the latest last.
    private var gathering: [Int32] = []
    /// Maximum number of gathering descriptors. Each costs a system call after every call of libcurl, also while idle. The
    /// number is above `ConnectionSharing.connections`, the connections of one host.
    static let mostGathering = 16
    /// libcurl was called since the last `sendGathered`, and may have sent something.
    var mayHaveSent = false

    init(poll: EventPoll) { self.poll = poll }

    /// A socket was made for a connection.
    func opened(_ descriptor: Int32) {
        set(descriptor, Socket(made: Self.inode(of: descriptor)))
    }

    /// The same was closed: the kernel has forgotten it, and its number may be another's from now on.
    func closed(_ descriptor: Int32) {
        set(descriptor, Socket())
        disturbed.remove(descriptor)
        gathering.removeAll { $0 == descriptor }
    }

    /// Returns whether bytes came on the connection with a local port while it was idle.
    func hasBytes(onPort port: UInt16) -> Bool {
        guard let descriptor = disturbed.first(where: { Self.localPort(of: $0) == port }) else { return false }
        disturbed.remove(descriptor)
        var byte: UInt8 = 0
        return recv(descriptor, &byte, 1, Int32(MSG_PEEK | MSG_DONTWAIT)) > 0
    }

    private static func localPort(of descriptor: Int32) -> UInt16? {
        var address = sockaddr_storage()
        var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
        let code = withUnsafeMutablePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { getsockname(descriptor, $0, &length) }
        }
        guard code == 0, [AF_INET, AF_INET6].contains(Int32(address.ss_family)) else { return nil }
        // At the same place in both families.
        return withUnsafeBytes(of: address) {
            UInt16(bigEndian: $0.loadUnaligned(fromByteOffset: MemoryLayout<sa_family_t>.size, as: UInt16.self))
        }
    }

    /// From now on the kernel keeps what is sent on a connection until `sendGathered`, or for 200 ms (`TCP_CORK`, tcp(7)): libcurl
    /// sends each request of a connection's streams by itself, which costs a segment, and wakes the server, for each.
    func gatherSends(of descriptor: Int32) {
        guard socket(descriptor).isConnection, !gathering.contains(descriptor), Self.set(TCP_CORK, of: descriptor)
        else { return }
        // Its sends go out as they come, and what waits goes out now.
        if gathering.count == Self.mostGathering { _ = Self.set(TCP_CORK, of: gathering.removeFirst(), to: 0) }
        gathering.append(descriptor)
    }

    /// Sends what was gathered. The connections go on gathering.
    func sendGathered() {
        guard mayHaveSent else { return }
        mayHaveSent = false
        // Set once more it sends what waits, also under `TCP_CORK`.
        for descriptor in gathering { _ = Self.set(TCP_NODELAY, of: descriptor) }
    }

    private static func set(_ option: Int32, of descriptor: Int32, to value: Int32 = 1) -> Bool {
        var value = value
        return setsockopt(descriptor, Int32(IPPROTO_TCP), option, &value, socklen_t(MemoryLayout<Int32>.size)) == 0
    }

    /// Watches a socket, in place of what it was watched for before.
    ///
    /// - Returns: `false` if the kernel refuses, which it does for lack of memory alone.
    func want(_ interest: EventPoll.Interest, of descriptor: Int32, tag: UInt32) -> Bool {
        var socket = socket(descriptor)
        if let made = socket.made, interest.contains(.read) {
            socket.made = nil
            socket.isConnection = Self.inode(of: descriptor) == made
        }
        let isKnown = socket.known == interest && socket.tag == tag && socket.isConnection
        guard isKnown || poll.watch(descriptor, for: interest, tag: tag, isNew: socket.known.isEmpty) else {
            return false
        }
        (socket.known, socket.tag, socket.isWanted) = (interest, tag, true)
        set(descriptor, socket)
        return true
    }

    /// Another socket has taken the place of one under its number: the kernel does not watch the other one yet.
    func replaced(_ descriptor: Int32, tag: UInt32) -> Bool {
        opened(descriptor)
        return want(.write, of: descriptor, tag: tag)
    }

    /// Nobody wants to hear of a socket for now.
    func dismiss(_ descriptor: Int32) {
        var socket = socket(descriptor)
        socket.isWanted = false
        if !socket.isConnection {
            poll.forget(descriptor)
            socket.known = []
        }
        set(descriptor, socket)
    }

    /// Whether somebody wants to hear of a socket that something happened on; if not it is watched no more.
    func isWanted(_ descriptor: Int32) -> Bool {
        guard !socket(descriptor).isWanted else { return true }
        poll.forget(descriptor)
        if socket(descriptor).isConnection { disturbed.insert(descriptor) }
        // An idle connection that is at its end may go untold, too.
        set(descriptor, Socket())
        return false
    }

    /// Which socket that is: no number but this is told apart from the next one's.
    static func inode(of descriptor: Int32) -> UInt64? {
        var status = stat()
        return fstat(descriptor, &status) == 0 ? UInt64(status.st_ino) : nil
    }

    private func socket(_ descriptor: Int32) -> Socket {
        sockets.indices.contains(Int(descriptor)) ? sockets[Int(descriptor)] : Socket()
    }

    private func set(_ descriptor: Int32, _ socket: Socket) {
        let index = Int(descriptor)
        while sockets.count <= index { sockets.append(Socket()) }
        sockets[index] = socket
    }
}
