import CPoll
import Glibc

/// The event loop of a ``ShapingProxy``: its connections and the epoll instance.
struct ProxyLoop {
    private static let listenerTag = UInt64.max
    private static let alarmTag = UInt64.max - 1

    private(set) var statistics = ShapingStatistics()
    private let poll: Int32
    private let listener: Int32
    private let target: UInt16
    private let options: ShapingOptions
    private let events: UnsafeMutableBufferPointer<epoll_event>
    private var link: TokenBucket?
    /// The connections by slot. The tag of a socket contains the slot of its connection.
    private var connections: [ShapedConnection?] = []
    private var vacant: [Int] = []
    private var first = 0
    /// The time in nanoseconds of the next step; 0: at once. `Int64.max`: after the next event.
    private var next = Int64.max
    private var isDead = false

    init(listener: Int32, alarm: Int32, input: Int32?, target: UInt16, options: ShapingOptions) throws(SocketFailure) {
        poll = epoll_create1(0)
        guard poll >= 0 else { throw SocketFailure("epoll_create1") }
        self.listener = listener
        self.target = target
        self.options = options
        events = .allocate(capacity: 512)
        link = options.totalRate.map { TokenBucket(rate: $0, now: Self.now()) }
        watch(listener, cpoll_readable, Self.listenerTag)
        watch(alarm, cpoll_readable, Self.alarmTag)
        if let input { watch(input, cpoll_readable, Self.alarmTag) }
    }

    /// Waits for events or the next step, and moves bytes. Returns `false` if the loop must end.
    mutating func turn() -> Bool {
        let count = epoll_wait(poll, events.baseAddress, Int32(events.count), timeout())
        for index in 0..<Int(max(count, 0)) {
            let event = events[index]
            switch event.data.u64 {
            case Self.alarmTag: return false
            case Self.listenerTag: accept()
            case let tag: connections[Int(tag >> 1)]?.note(event.events, ofClient: tag & 1 == 0)
            }
        }
        step(Self.now())
        if let most = options.diesAfter, statistics.bytes >= most, !isDead { die() }
        return true
    }

    /// Resets the open connections and closes all descriptors.
    mutating func close() {
        for slot in connections.indices { end(slot) }
        if !isDead { Glibc.close(listener) }
        Glibc.close(poll)
        events.deallocate()
    }

    private func timeout() -> Int32 {
        if next == .max { return -1 }
        let left = next - Self.now()
        return left <= 0 ? 0 : Int32(min((left + 999_999) / 1_000_000, 60_000))
    }

    /// Steps each connection once. The first connection differs each time, for fairness.
    private mutating func step(_ now: Int64) {
        next = .max
        guard !connections.isEmpty else { return }
        first = (first + 1) % connections.count
        for offset in connections.indices {
            let slot = (first + offset) % connections.count
            guard let before = connections[slot]?.down.deliveredBytes,
                let outcome = connections[slot]?.step(now, link: &link)
            else { continue }
            statistics.bytes += (connections[slot]?.down.deliveredBytes ?? before) - before
            switch outcome {
            case .moved: next = 0
            case .waits(let time): next = min(next, time)
            case .broken: end(slot)
            }
        }
    }

    private mutating func accept() {
        let sendBuffer = options.window < ShapingOptions.defaultWindow ? options.window : nil
        while let client = Sockets.accept(listener, sendBuffer: sendBuffer) {
            statistics.accepted += 1
            guard let server = try? Sockets.connect(port: target) else {
                Sockets.resetOnClose(client)
                Glibc.close(client)
                continue
            }
            let slot = vacant.popLast() ?? connections.count
            if slot == connections.count { connections.append(nil) }
            connections[slot] = ShapedConnection(
                number: statistics.accepted, client: client, server: server, options: options, now: Self.now())
            statistics.open += 1
            statistics.mostOpen = max(statistics.mostOpen, statistics.open)
            watch(client, cpoll_socket, UInt64(slot) << 1)
            watch(server, cpoll_socket, UInt64(slot) << 1 | 1)
        }
    }

    private mutating func end(_ slot: Int) {
        guard connections[slot] != nil else { return }
        if connections[slot]?.down.isReset == true { statistics.resets += 1 }
        connections[slot]?.close()
        connections[slot] = nil
        vacant.append(slot)
        statistics.open -= 1
    }

    private mutating func die() {
        isDead = true
        Glibc.close(listener)
        for slot in connections.indices { end(slot) }
    }

    private func watch(_ descriptor: Int32, _ interest: UInt32, _ tag: UInt64) {
        var event = epoll_event(events: interest, data: epoll_data_t(u64: tag))
        // epoll_ctl fails for files, which cannot be watched and have no end event.
        _ = epoll_ctl(poll, EPOLL_CTL_ADD, descriptor, &event)
    }

    private static func now() -> Int64 {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
    }
}
