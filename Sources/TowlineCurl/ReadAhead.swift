/// The attempts whose TLS may hold bytes that no socket tells of.
///
/// OpenSSL reads a record's head of five bytes, then the rest: two system calls for 16 KiB. Told to read ahead, it takes
/// several records at once. libcurl before 8.15 does not look whether any of them is left before it waits for the socket
/// again (curl/curl#17548, #17601), so it is called until none is.
struct ReadAhead {
    /// So many bytes at once: four records of TLS with what goes around each (RFC 8446 §5.2), as libcurl does it from 8.15 on.
    /// Two are a little slower, eight no faster.
    static func length(bufferSize: Int) -> Int? {
        let records = min(4, bufferSize / record)
        return records > 1 ? records * (record + around) : nil
    }
    private static let record = 16 << 10
    private static let around = 30

    /// libcurl is called so often in a row; then others have their turn.
    private static let mostCalls = 16
    /// So many calls in a row may bring nothing to anybody: a record may hold the head of a chunk alone, or a byte of a line, and
    /// the smallest has 22 bytes with what goes around.
    private static let mostVain = 4 * (record + around) / 22

    /// By the socket that is read from.
    private var readers: [Int32: Attempt] = [:]
    /// Those that may hold something now.
    private(set) var holders: [Attempt] = []

    /// An attempt may be one whose TLS reads ahead, and has its socket. Something may have come already: libcurl looks as soon
    /// as it has sent the request.
    mutating func watch(_ attempt: Attempt) {
        guard attempt.readsAhead, let socket = attempt.socket else { return }
        readers[socket] = attempt
        note(socket)
    }

    /// Something came from a socket, whatever libcurl made of it.
    mutating func note(_ socket: Int32) {
        guard !readers.isEmpty, let attempt = readers[socket] else { return }
        attempt.vainCalls = 0
        note(attempt)
    }

    /// libcurl may have looked at any of its sockets.
    mutating func noteAll() {
        for socket in readers.keys { note(socket) }
    }

    /// Something of an attempt's answer has come.
    mutating func note(_ attempt: Attempt) {
        guard attempt.readsAhead, !attempt.mayHoldUnread else { return }
        attempt.mayHoldUnread = true
        holders.append(attempt)
    }

    /// Nothing is left for an attempt.
    mutating func clear(_ attempt: Attempt) {
        attempt.mayHoldUnread = false
        holders.removeAll { $0 === attempt }
    }

    /// An attempt is over.
    mutating func forget(_ handle: EasyHandle) {
        guard !readers.isEmpty || !holders.isEmpty else { return }
        holders.removeAll { $0.handle === handle }
        for (socket, attempt) in readers where attempt.handle === handle { readers[socket] = nil }
    }

    /// Calls libcurl for a socket until nothing is left of what TLS read from it, or others are to have their turn.
    ///
    /// - Returns: whether something may be left.
    static func drain<Failure: Error>(
        _ attempt: Attempt, _ call: (Int32) throws(Failure) -> Void
    ) throws(Failure) -> Bool {
        for _ in 0..<mostCalls {
            guard let socket = attempt.socket, attempt.isFed, !attempt.isOffered, attempt.handle.hasUnread,
                attempt.vainCalls < mostVain
            else { return false }
            let pieces = attempt.pieces
            try call(socket)
            attempt.vainCalls = attempt.pieces == pieces ? attempt.vainCalls + 1 : 0
        }
        return true
    }
}
