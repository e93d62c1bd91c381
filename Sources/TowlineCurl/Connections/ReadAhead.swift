import CCurl

/// Read-ahead of TLS on the connections of a pool. Has the attempts (HTTP requests) whose TLS library, OpenSSL, may hold
/// received bytes that no socket event reports, and makes libcurl read those bytes.
///
/// OpenSSL reads the five-byte header of a record, then the rest: two system calls for 16 KiB. With read-ahead, it
/// reads several records at once. libcurl before 8.15 does not check for remaining records before it waits for the
/// socket again (curl/curl#17548, #17601), so the pool calls libcurl until none remains.
final class ReadAhead {
    /// The state of one attempt. Only `ReadAhead` uses the properties.
    struct Reader {
        /// `true` if OpenSSL reads ahead on the connection, and so may hold received bytes that libcurl has not read.
        fileprivate var isOn = false
        /// `true` if the attempt is in `holders`.
        fileprivate var mayHoldUnread = false
        /// The number of consecutive calls of libcurl that should have delivered bytes of the response but delivered
        /// none.
        fileprivate var vainCalls = 0
    }

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
    private var holders: [Attempt] = []
    /// `false` for a pool whose attempts share connections: libcurl keeps its own record of unread data there.
    private let isAllowed: Bool

    init(isAllowed: Bool) { self.isAllowed = isAllowed }

    /// Returns whether OpenSSL may hold received bytes that no socket event reports. The loop must then call
    /// `ConnectionPool.readOn` instead of waiting.
    var mayHoldUnread: Bool { !holders.isEmpty }

    /// Records whether OpenSSL reads ahead on the connection of an attempt, perhaps since an earlier response. Called
    /// when the request is sent.
    func requestIsSent(by attempt: Attempt) {
        attempt.readAhead.isOn = isAllowed && attempt.handle.readsAhead
    }

    /// Makes OpenSSL read ahead, if the connection uses TLS. Called when a response head over HTTP/1 is complete.
    func begin(for attempt: Attempt) {
        guard isAllowed, let length = Self.length(bufferSize: attempt.handle.bufferSize) else { return }
        attempt.readAhead.isOn = attempt.handle.readAhead(length)
        watch(attempt)
    }

    /// Registers an attempt if OpenSSL reads ahead on its connection and its socket is known. Assumes that bytes have
    /// arrived: libcurl reads as soon as it has sent the request.
    func watch(_ attempt: Attempt) {
        guard attempt.readAhead.isOn, let socket = attempt.connection.socket else { return }
        readers[socket] = attempt
        noteRead(from: socket)
    }

    /// Records that libcurl read from a socket, whether or not it delivered bytes: OpenSSL may hold further bytes.
    func noteRead(from socket: Int32) {
        guard !readers.isEmpty, let attempt = readers[socket] else { return }
        noteBytes(of: attempt)
    }

    /// Records that libcurl may have read from any of its sockets: OpenSSL may hold further bytes of each of them.
    func noteReads() {
        for socket in readers.keys { noteRead(from: socket) }
    }

    /// Records that bytes of an attempt's response arrived: OpenSSL may hold more.
    func noteBytes(of attempt: Attempt) {
        guard attempt.readAhead.isOn else { return }
        attempt.readAhead.vainCalls = 0
        guard !attempt.readAhead.mayHoldUnread else { return }
        attempt.readAhead.mayHoldUnread = true
        holders.append(attempt)
    }

    /// Removes the attempt that a handle ran, because it has ended.
    func forget(_ handle: EasyHandle) {
        guard !readers.isEmpty || !holders.isEmpty else { return }
        holders.removeAll { $0.handle === handle }
        for (socket, attempt) in readers where attempt.handle === handle { readers[socket] = nil }
    }

    /// Makes libcurl read from the sockets (`call`) of all attempts that OpenSSL may hold bytes for.
    func drain<Failure: Error>(_ call: (Int32) throws(Failure) -> Void) throws(Failure) {
        for attempt in holders {
            guard try !drain(attempt, call) else { continue }
            attempt.readAhead.mayHoldUnread = false
            holders.removeAll { $0 === attempt }
        }
    }

    /// Makes libcurl read from the socket of an attempt until OpenSSL holds no more bytes for it, or the attempt takes
    /// none.
    ///
    /// - Returns: `true` if the maximum number of calls was reached and bytes may remain.
    private func drain<Failure: Error>(
        _ attempt: Attempt, _ call: (Int32) throws(Failure) -> Void
    ) throws(Failure) -> Bool {
        for _ in 0..<Self.mostCalls {
            guard let socket = attempt.connection.socket, attempt.isFed, attempt.handle.hasUnread,
                attempt.readAhead.vainCalls < Self.mostVain
            else { return false }
            // `noteBytes` sets the number to 0 if the call delivers bytes.
            attempt.readAhead.vainCalls += 1
            try call(socket)
        }
        return true
    }
}

extension EasyHandle {
    /// Makes OpenSSL read up to `length` available bytes from the socket at once, instead of one record in two reads.
    /// Call it from a callback of the attempt.
    ///
    /// - Returns: whether TLS now reads ahead.
    fileprivate func readAhead(_ length: Int) -> Bool { ccurl_read_ahead(pointer, length) != 0 }

    /// Returns whether OpenSSL reads ahead on the connection, perhaps since an earlier response.
    fileprivate var readsAhead: Bool { ccurl_reads_ahead(pointer) != 0 }

    /// Returns whether the TLS library holds received bytes that libcurl has not read.
    fileprivate var hasUnread: Bool { ccurl_has_unread(pointer) != 0 }
}
