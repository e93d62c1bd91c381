/// The connections of a listener, and which of them is closed when a limit is reached.
///
/// A connection is a stranger until its client has shown the access token or a session. Strangers together have a limit,
/// whatever their addresses are, so that no number of addresses locks out the owner. A new stranger above the limit
/// replaces the oldest stranger. Above the limit of authenticated connections, the connection that has been idle for the
/// longest time is closed.
struct ConnectionTable<Connection: Hashable> {
    private struct Entry {
        /// A later connection has a larger number.
        let number: Int
        var isAuthenticated = false
        /// The number of the event that made the connection idle; `nil` while a request is in progress.
        var idleSince: Int?
    }

    private let strangerLimit: Int
    private let authenticatedLimit: Int
    private var entries: [Connection: Entry] = [:]
    private var events = 0

    /// - Parameter limit: the maximum number of connections of the listener. Strangers have a quarter, authenticated
    ///   connections have a half. The rest is for connections that are being closed.
    init(limit: Int) {
        strangerLimit = max(1, limit / 4)
        authenticatedLimit = max(1, limit / 2)
    }

    /// Adds a stranger. Returns the connection to close, which is no longer in the table.
    mutating func add(_ connection: Connection) -> Connection? {
        let oldest = excess(of: strangerLimit - 1) { $0.isAuthenticated ? nil : $0.number }
        if let oldest { entries[oldest] = nil }
        let number = nextEvent()
        entries[connection] = Entry(number: number, idleSince: number)
        return oldest
    }

    /// Records that the client of a connection has shown the access token or a session. Returns the connection to
    /// close, which is no longer in the table: this connection if no other one is idle.
    mutating func authenticate(_ connection: Connection) -> Connection? {
        guard entries[connection]?.isAuthenticated == false else { return nil }
        guard entries.values.count(where: \.isAuthenticated) >= authenticatedLimit else {
            entries[connection]?.isAuthenticated = true
            return nil
        }
        let victim = excess(of: 0) { $0.isAuthenticated ? $0.idleSince : nil } ?? connection
        entries[victim] = nil
        entries[connection]?.isAuthenticated = true
        return victim
    }

    /// Records that a connection has become idle, or that a request is in progress.
    mutating func set(idle: Bool, _ connection: Connection) {
        let event = nextEvent()
        entries[connection]?.idleSince = idle ? event : nil
    }

    mutating func remove(_ connection: Connection) { entries[connection] = nil }

    /// Returns the connection with the smallest order if more than `limit` connections have an order.
    private func excess(of limit: Int, _ order: (Entry) -> Int?) -> Connection? {
        let candidates = entries.compactMap { connection, entry in order(entry).map { (connection, $0) } }
        return candidates.count > limit ? candidates.min { $0.1 < $1.1 }?.0 : nil
    }

    private mutating func nextEvent() -> Int {
        events += 1
        return events
    }
}
