import CCurl
import Glibc

/// A record of the events that each socket of an engine thread is watched for, and of the connections whose small sends
/// the kernel combines (gathers) into fewer TCP segments (docs/internals/gathered-requests.md).
///
/// Idle connections stay watched, because libcurl watches them again with the next request. If an event occurs on an
/// idle connection, usually its end, the kernel stops watching it.
///
/// libcurl does not report the close of a socket that was never connected (7.88.0 to 8.1.2, curl/curl#11439), and a
/// resolver may get its number next. A socket therefore counts as a connection from the first time that libcurl wants
/// to read from it, if it still has the inode of the socket that was opened.
///
/// Confined to one engine thread, a thread that runs libcurl.
final class SocketWatch {
    /// The state of one socket: the events that it is watched for, and whether it is a connection.
    private struct Socket {
        /// The inode of the socket that was opened, until the socket counts as a connection; otherwise `nil`.
        var made: UInt64?
        /// `true` for a connection, whose close libcurl reports. Other sockets must be removed from the kernel's watch
        /// once libcurl does not need them.
        var isConnection = false
        /// The events that the kernel watches the socket for now; empty if it does not watch the socket.
        var known: EventPoll.Interest = []
        var tag: UInt32 = 0
        /// `true` if libcurl now wants the events of the socket. Idle connections stay watched without that.
        var isWanted = false
    }

    private let poll: EventPoll
    /// The state of each socket, indexed by descriptor.
    private var sockets: [Socket] = []
    /// The descriptors of idle connections on which an event occurred: bytes that belong to no response, or the end.
    private var disturbed: Set<Int32> = []
    /// The descriptors whose small sends the kernel holds back, to combine them, until `sendGathered`; the latest last.
    private var gathering: [Int32] = []
    /// The maximum number of connections whose small sends the kernel combines (gathers). Each costs a system call
    /// after every call of libcurl, even while idle. The number is above `ConnectionSharing.connections`, the
    /// connections of one host.
    static let mostGathering = 16
    /// `true` if libcurl was called since the last `sendGathered`, so it may have sent bytes.
    var mayHaveSent = false

    init(poll: EventPoll) { self.poll = poll }

    /// Records that a socket was opened, which counts as a connection once libcurl wants to read from it.
    func opened(_ descriptor: Int32) {
        set(descriptor, Socket(made: Self.inode(of: descriptor)))
    }

    /// Records that a socket was closed. The kernel has stopped watching it, and the descriptor may belong to another
    /// socket next.
    func closed(_ descriptor: Int32) {
        set(descriptor, Socket())
        disturbed.remove(descriptor)
        gathering.removeAll { $0 == descriptor }
    }

    /// Returns whether bytes that belong to no response arrived on the connection with a local port while it was idle.
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
        // The port has the same offset in both families.
        return withUnsafeBytes(of: address) {
            UInt16(bigEndian: $0.loadUnaligned(fromByteOffset: MemoryLayout<sa_family_t>.size, as: UInt16.self))
        }
    }

    /// Makes the kernel hold back sends on a connection until `sendGathered`, for 200 ms at most (`TCP_CORK`, tcp(7)).
    /// libcurl sends the request of each stream separately, and each send costs a TCP segment and wakes the server.
    func gatherSends(of descriptor: Int32) {
        guard socket(descriptor).isConnection, !gathering.contains(descriptor), Self.set(TCP_CORK, of: descriptor)
        else { return }
        // The oldest descriptor sends immediately from now on, including the bytes that wait.
        if gathering.count == Self.mostGathering { _ = Self.set(TCP_CORK, of: gathering.removeFirst(), to: 0) }
        gathering.append(descriptor)
    }

    /// Sends the bytes that the kernel holds back on connections whose small sends it combines (gathers) into fewer TCP
    /// segments. Later sends are held back again.
    func sendGathered() {
        guard mayHaveSent else { return }
        mayHaveSent = false
        // Setting `TCP_NODELAY` again sends waiting bytes, even under `TCP_CORK`.
        for descriptor in gathering { _ = Self.set(TCP_NODELAY, of: descriptor) }
    }

    private static func set(_ option: Int32, of descriptor: Int32, to value: Int32 = 1) -> Bool {
        var value = value
        return setsockopt(descriptor, Int32(IPPROTO_TCP), option, &value, socklen_t(MemoryLayout<Int32>.size)) == 0
    }

    /// Watches a socket for the events `interest`, which replace those watched before. `tag` is the number that its
    /// events carry.
    ///
    /// - Returns: `false` if the kernel refuses, which happens only for lack of memory.
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

    /// Watches a socket that took over the descriptor of another socket, until it can be written. The kernel does not
    /// watch the new socket yet. Returns `false` if the kernel refuses, for lack of memory.
    func replaced(_ descriptor: Int32, tag: UInt32) -> Bool {
        opened(descriptor)
        return want(.write, of: descriptor, tag: tag)
    }

    /// Records that libcurl wants no events of a socket for now. The kernel keeps watching a connection, and only stops
    /// watching other sockets.
    func dismiss(_ descriptor: Int32) {
        var socket = socket(descriptor)
        socket.isWanted = false
        if !socket.isConnection {
            poll.forget(descriptor)
            socket.known = []
        }
        set(descriptor, socket)
    }

    /// Returns whether libcurl wants the event that occurred on a socket. If not, stops watching the socket.
    func isWanted(_ descriptor: Int32) -> Bool {
        guard !socket(descriptor).isWanted else { return true }
        poll.forget(descriptor)
        if socket(descriptor).isConnection { disturbed.insert(descriptor) }
        // The idle connection may be at its end, and libcurl may not report its close.
        set(descriptor, Socket())
        return false
    }

    /// Returns the inode of a socket, which distinguishes it from a later socket with the same descriptor; `nil` if the
    /// descriptor is closed.
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
