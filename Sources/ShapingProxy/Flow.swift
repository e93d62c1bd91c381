import Glibc

/// One direction of a connection: moves bytes from a socket to another one with a delay and limits.
///
/// Rates limit the reading, so that the sender slows down and no queue grows in the proxy. The delay is between reading
/// and writing. The sockets are edge-triggered: they are ready until a call returns EAGAIN.
struct Flow {
    /// The result of a step.
    enum Outcome {
        /// Bytes moved; another step may move more.
        case moved
        /// No byte can move before this time in nanoseconds; `Int64.max`: before a socket is ready.
        case waits(Int64)
        /// A socket failed, or the direction has reached `breaksAt`.
        case broken
    }

    /// The initial window in bytes: ten packets (RFC 6928).
    private static let firstWindow = 14_600

    var isReadable = true
    var isWritable = false
    /// The number of bytes that this direction has delivered.
    private(set) var deliveredBytes: Int64 = 0
    /// `true` after the end of the source was passed to the sink.
    private(set) var isFinished = false
    /// The number of delivered bytes after which the direction stalls.
    var stallsAt = Int64.max
    /// The number of delivered bytes after which the connection is reset.
    var breaksAt = Int64.max
    /// `true` if the direction has reached `breaksAt`.
    var isReset: Bool { deliveredBytes >= breaksAt }
    var isStalled: Bool { deliveredBytes >= stallsAt }

    private let source: Int32
    private let sink: Int32
    /// Half of the round-trip time, in nanoseconds.
    private let delay: Int64
    /// The earliest departure time of bytes, in nanoseconds. They arrive `delay` later.
    private let opens: Int64
    private var window: Window
    private var bucket: TokenBucket?
    private var ring: Ring
    private var due = Due()

    /// The bytes that may be on their way.
    private struct Window {
        let most: Int
        var size: Int
        var inFlight = 0
    }

    /// The bytes on their way, with the times at which they arrive.
    private struct Due {
        var arrivals = TimedQueue()
        var acknowledgements = TimedQueue()
        /// The time at which the end of the source arrives at the sink; `nil` before the source has ended.
        var end: Int64?
    }

    init(from source: Int32, to sink: Int32, options: ShapingOptions, rate: Int64?, opens: Int64, now: Int64) {
        self.source = source
        self.sink = sink
        self.opens = opens
        delay = options.delay / 2
        let most = options.window
        window = Window(most: most, size: options.slowStart && delay > 0 ? min(Self.firstWindow, most) : most)
        bucket = rate.map { TokenBucket(rate: $0, now: now) }
        ring = Ring(capacity: delay > 0 ? options.window : min(options.window, 256 << 10))
    }

    /// Reads and writes the bytes that the limits and the delay permit now.
    mutating func step(_ now: Int64, link: inout TokenBucket?) -> Outcome {
        guard !isFinished, !isStalled else { return .waits(.max) }
        acknowledge(now)
        let taking = take(now, link: &link)
        let handing = handOn(now)
        switch (taking, handing) {
        case (.broken, _), (_, .broken): return .broken
        case (.moved, _), (_, .moved): return .moved
        case (.waits(let one), .waits(let other)): return .waits(min(one, other))
        }
    }

    mutating func release() { ring.release() }

    private mutating func acknowledge(_ now: Int64) {
        while case let length = self.due.acknowledgements.front(now), length > 0 {
            window.inFlight -= length
            window.size = min(window.size + length, window.most)
            self.due.acknowledgements.remove(length)
        }
    }

    private mutating func take(_ now: Int64, link: inout TokenBucket?) -> Outcome {
        guard isReadable, due.end == nil else { return .waits(.max) }
        var limit = min(window.size - window.inFlight, ring.capacity - ring.used)
        guard limit > 0 else { return .waits(self.due.acknowledgements.due ?? .max) }
        if case let available? = bucket?.available(now) {
            guard let least = bucket?.least, available >= least else { return .waits(bucket?.time() ?? .max) }
            limit = min(limit, available)
        }
        if case let available? = link?.available(now) {
            guard let least = link?.least, available >= least else { return .waits(link?.time() ?? .max) }
            // Small reads, so that connections share the link fairly.
            limit = min(limit, available, 64 << 10)
        }
        let count = ring.receive(from: source, limit: limit)
        if count < 0 {
            guard errno == EAGAIN || errno == EINTR else { return .broken }
            isReadable = errno == EINTR
            return .waits(.max)
        }
        let due = max(now, opens) + delay
        if count == 0 {
            self.due.end = due
            return .moved
        }
        bucket?.take(count)
        link?.take(count)
        window.inFlight += count
        self.due.arrivals.append(count, due: due)
        return .moved
    }

    private mutating func handOn(_ now: Int64) -> Outcome {
        var moved = false
        while isWritable, case let length = self.due.arrivals.front(now), length > 0 {
            let limit = Int(min(Int64(length), stallsAt - deliveredBytes, breaksAt - deliveredBytes))
            let count = ring.send(to: sink, limit: limit)
            guard count > 0 else {
                guard errno == EAGAIN || errno == EINTR else { return .broken }
                isWritable = errno == EINTR
                break
            }
            moved = true
            deliveredBytes += Int64(count)
            self.due.arrivals.remove(count)
            if delay > 0 {
                self.due.acknowledgements.append(count, due: now + delay)
            } else {
                window.inFlight -= count
            }
            if isReset { return .broken }
            if isStalled { return .moved }
        }
        if moved { return .moved }
        if let due = self.due.arrivals.due { return .waits(isWritable ? due : .max) }
        guard let end = due.end else { return .waits(.max) }
        guard end <= now else { return .waits(end) }
        isFinished = true
        // The peer may be gone; the other direction detects this.
        shutdown(sink, Int32(SHUT_WR))
        return .moved
    }
}
