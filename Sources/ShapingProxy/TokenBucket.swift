/// Lets bytes through at a rate. It saves up for 50 ms, so that a thread that is woken late makes up for it.
struct TokenBucket {
    private let rate: Double
    private let most: Double
    /// Fewer bytes than this are not worth a system call.
    let least: Int
    private var tokens = 0.0
    private var filled: Int64

    init(rate: Int64, now: Int64) {
        self.rate = Double(rate)
        least = Int(min(max(rate / 500, 1), 32 << 10))
        most = max(Double(rate) / 20, Double(least))
        filled = now
    }

    /// How many bytes may go now.
    mutating func available(_ now: Int64) -> Int {
        tokens = min(most, tokens + Double(now - filled) * rate / 1e9)
        filled = now
        return Int(tokens)
    }

    /// When ``least`` bytes may go.
    func time() -> Int64 { filled + Int64(((Double(least) - tokens) / rate * 1e9).rounded(.up)) }

    mutating func take(_ count: Int) { tokens -= Double(count) }
}

/// Lengths in order, each with the time at which it is due.
struct TimedQueue {
    /// Lengths due so close together count as one, so that the queue stays short.
    private static let grain: Int64 = 250_000

    private var entries: [(length: Int, due: Int64)] = []
    private var head = 0

    var due: Int64? { head < entries.count ? entries[head].due : nil }

    mutating func append(_ length: Int, due: Int64) {
        if head < entries.count, due - entries[entries.count - 1].due < Self.grain {
            entries[entries.count - 1].length += length
        } else {
            entries.append((length, due))
        }
    }

    /// The length at the front, if it is due.
    func front(_ now: Int64) -> Int { head < entries.count && entries[head].due <= now ? entries[head].length : 0 }

    /// Takes from the front.
    mutating func remove(_ length: Int) {
        entries[head].length -= length
        guard entries[head].length == 0 else { return }
        head += 1
        if head == entries.count {
            entries.removeAll(keepingCapacity: true)
            head = 0
        } else if head > 1024 {
            entries.removeFirst(head)
            head = 0
        }
    }
}
