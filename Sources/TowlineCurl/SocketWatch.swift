/// What the sockets of an engine thread are watched for.
///
/// Between two requests libcurl has a connection watched no more, and with the next for the same as before. A connection
/// therefore stays with the kernel meanwhile, which saves three system calls for each small file; if something happens on
/// it, which an idle one does at its end, it goes.
///
/// Confined to its engine thread.
final class SocketWatch {
    private struct Socket {
        /// Made for a connection, whose end is told: no other socket may stay once nobody asks about it.
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

    init(poll: EventPoll) { self.poll = poll }

    /// A socket was made for a connection.
    func opened(_ descriptor: Int32) {
        set(descriptor, Socket(isConnection: true))
    }

    /// The same was closed: the kernel has forgotten it, and its number may be another's from now on.
    func closed(_ descriptor: Int32) {
        set(descriptor, Socket())
    }

    /// Watches a socket, in place of what it was watched for before.
    ///
    /// - Returns: `false` if the kernel refuses, which it does for lack of memory alone.
    func want(_ interest: EventPoll.Interest, of descriptor: Int32, tag: UInt32) -> Bool {
        var socket = socket(descriptor)
        let isKnown = socket.known == interest && socket.tag == tag && socket.isConnection
        guard isKnown || poll.watch(descriptor, for: interest, tag: tag, isNew: socket.known.isEmpty) else {
            return false
        }
        (socket.known, socket.tag, socket.isWanted) = (interest, tag, true)
        set(descriptor, socket)
        return true
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
        var socket = socket(descriptor)
        guard !socket.isWanted else { return true }
        poll.forget(descriptor)
        socket.known = []
        set(descriptor, socket)
        return false
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
