/// A rate limiter for bytes. Up to 50 ms of unused rate accumulate, so that a late wake-up does not lower the rate.
struct TokenBucket {
    private let rate: Double
    private let most: Double
    /// The minimum number of bytes for a system call.
    let least: Int
    private var tokens = 0.0
    private var filled: Int64

    init(rate: Int64, now: Int64) {
        self.rate = Double(rate)
        least = Int(min(max(rate / 500, 1), 32 << 10))
        most = max(Double(rate) / 20, Double(least))
        filled = now
    }

    /// Returns the number of bytes that may be sent at `now`, in nanoseconds.
    mutating func available(_ now: Int64) -> Int {
        tokens = min(most, tokens + Double(now - filled) * rate / 1e9)
        filled = now
        return Int(tokens)
    }

    /// Returns the time in nanoseconds at which ``least`` bytes may be sent.
    func time() -> Int64 { filled + Int64(((Double(least) - tokens) / rate * 1e9).rounded(.up)) }

    mutating func take(_ count: Int) { tokens -= Double(count) }
}

/// A queue of lengths, each with the time at which it is due.
struct TimedQueue {
    /// The maximum difference in nanoseconds at which two lengths are merged, which keeps the queue short.
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

    /// Returns the length at the front if it is due; otherwise 0.
    func front(_ now: Int64) -> Int { head < entries.count && entries[head].due <= now ? entries[head].length : 0 }

    /// Subtracts `length` from the entry at the front, and removes the entry at 0.
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
