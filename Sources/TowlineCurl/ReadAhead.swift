/// A list of the attempts (HTTP requests) whose TLS library, OpenSSL, may hold received bytes that no socket event
/// reports.
///
/// OpenSSL reads the five-byte header of a record, then the rest: two system calls for 16 KiB. With read-ahead, it
/// reads several records at once. libcurl before 8.15 does not check for remaining records before it waits for the
/// socket again (curl/curl#17548, #17601), so the pool calls libcurl until none remains.
struct ReadAhead {
    /// Returns the number of bytes to read at once: four TLS records with their overhead (RFC 8446 §5.2), as libcurl
    /// does from 8.15 on. Two are a little slower, eight no faster. `nil`, which means no read-ahead, if libcurl's
    /// buffer of `bufferSize` bytes holds less than two records.
    static func length(bufferSize: Int) -> Int? {
        let records = min(4, bufferSize / record)
        return records > 1 ? records * (record + around) : nil
    }
    private static let record = 16 << 10
    private static let around = 30

    /// The maximum number of consecutive calls of libcurl for one attempt, so that other attempts are served too.
    private static let mostCalls = 16
    /// The maximum number of consecutive calls of libcurl that deliver no bytes: a record may hold only the header of a
    /// chunk, or one byte of a line. The smallest record has 22 bytes including its overhead.
    private static let mostVain = 4 * (record + around) / 22

    /// The attempts whose connections OpenSSL reads ahead on, by the descriptor of the socket.
    private var readers: [Int32: Attempt] = [:]
    /// The attempts with received bytes that OpenSSL may hold unread now.
    private(set) var holders: [Attempt] = []

    /// Registers an attempt if OpenSSL reads ahead on its connection and its socket is known. Assumes that bytes have
    /// arrived: libcurl reads as soon as it has sent the request.
    mutating func watch(_ attempt: Attempt) {
        guard attempt.readsAhead, let socket = attempt.socket else { return }
        readers[socket] = attempt
        note(socket)
    }

    /// Records that libcurl read from a socket, whether or not it delivered bytes: OpenSSL may hold further bytes.
    mutating func note(_ socket: Int32) {
        guard !readers.isEmpty, let attempt = readers[socket] else { return }
        attempt.vainCalls = 0
        note(attempt)
    }

    /// Records that libcurl may have read from any of its sockets: OpenSSL may hold further bytes of each of them.
    mutating func noteAll() {
        for socket in readers.keys { note(socket) }
    }

    /// Records that bytes of an attempt's response arrived, and adds the attempt to `holders` if OpenSSL reads ahead
    /// for it.
    mutating func note(_ attempt: Attempt) {
        guard attempt.readsAhead, !attempt.mayHoldUnread else { return }
        attempt.mayHoldUnread = true
        holders.append(attempt)
    }

    /// Records that OpenSSL holds no more bytes for an attempt.
    mutating func clear(_ attempt: Attempt) {
        attempt.mayHoldUnread = false
        holders.removeAll { $0 === attempt }
    }

    /// Removes the attempt that a handle ran, because it has ended.
    mutating func forget(_ handle: EasyHandle) {
        guard !readers.isEmpty || !holders.isEmpty else { return }
        holders.removeAll { $0.handle === handle }
        for (socket, attempt) in readers where attempt.handle === handle { readers[socket] = nil }
    }

    /// Makes libcurl read from a socket (`call`) until OpenSSL holds no more bytes for the attempt, or the attempt
    /// takes none. Stops after `mostCalls` calls, so that other attempts are served too.
    ///
    /// - Returns: `true` if the limit was reached and bytes may remain.
    static func drain<Failure: Error>(
        _ attempt: Attempt, _ call: (Int32) throws(Failure) -> Void
    ) throws(Failure) -> Bool {
        for _ in 0..<mostCalls {
            guard let socket = attempt.socket, attempt.isFed, attempt.handle.hasUnread,
                attempt.vainCalls < mostVain
            else { return false }
            let pieces = attempt.pieces
            try call(socket)
            attempt.vainCalls = attempt.pieces == pieces ? attempt.vainCalls + 1 : 0
        }
        return true
    }
}
