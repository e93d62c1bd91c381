import Synchronization

/// A pool of memory buffers for small files while their bytes arrive. Without it, one thread would allocate a buffer
/// and another would free it, and both would contend for the allocator's lock.
final class BufferPool: Sendable {
    /// The maximum number of bytes in all buffers that are in use. Above it, a response gets no buffer, and is written
    /// to a part file as it arrives.
    static let mostHeld = 32 << 20
    /// The maximum number of bytes in unused buffers that are kept for reuse. Buffers beyond that are freed.
    private static let mostIdle = 8 << 20
    /// The capacity in bytes above which an unused buffer counts as large. A response of at most this length does not
    /// get a large buffer, so that these stay available for longer responses.
    private static let small = 64 << 10
    /// The size in bytes of a new buffer while more than half of `mostHeld` is in use. It grows as the body arrives, so
    /// that more responses get a buffer.
    private static let first = 16 << 10

    /// The unused memory buffers, small and large ones, and the sum of their capacities in bytes.
    private struct IdleBuffers {
        var small: [[UInt8]] = []
        var large: [[UInt8]] = []
        var idle = 0

        /// Removes and returns an unused large buffer whose capacity is at most four times `count` bytes, so that a
        /// short body does not occupy a very large one; `nil` if none exists.
        mutating func takeLarge(_ count: Int) -> [UInt8]? {
            large.lastIndex { $0.capacity / 4 <= count }.map { large.remove(at: $0) }
        }
    }

    private let state = Mutex(IdleBuffers())
    /// The number of bytes in all buffers that are in use.
    private let held = Atomic<Int>(0)

    /// Replaces the empty array `buffer` with one of capacity `count`. While many bytes are in use, the capacity may be
    /// less and must be grown later: with a long round trip, heads arrive long before bodies.
    ///
    /// - Returns: `false` if too many bytes are in use; `buffer` is then unchanged.
    func take(_ count: Int, into buffer: inout [UInt8]) -> Bool {
        guard count > 0 else { return true }
        let count = hasRoom(for: count + Self.mostHeld / 2) ? count : min(count, Self.first)
        guard hasRoom(for: count) else { return false }
        state.withLock { state in
            guard let idle = count > Self.small ? state.takeLarge(count) : state.small.popLast() else { return }
            state.idle -= idle.capacity
            buffer = idle
        }
        buffer.reserveCapacity(count)
        held.add(buffer.capacity, ordering: .relaxed)
        return true
    }

    /// Grows a buffer that `take` returned to at least the capacity `count`. Returns `false` if too many bytes are in
    /// use in all buffers.
    func grow(_ buffer: inout [UInt8], to count: Int) -> Bool {
        let old = buffer.capacity
        guard count > old else { return true }
        guard hasRoom(for: count - old) else { return false }
        buffer.reserveCapacity(max(count, 2 * old))
        held.add(buffer.capacity - old, ordering: .relaxed)
        return true
    }

    private func hasRoom(for more: Int) -> Bool { held.load(ordering: .relaxed) + more <= Self.mostHeld }

    /// Counts a buffer that was not allocated by `take` among the buffers in use, so that `give` can later put it into
    /// the pool.
    func adopt(_ buffer: [UInt8]) { held.add(buffer.capacity, ordering: .relaxed) }

    /// Puts a buffer that is no longer used back into the pool, and sets `buffer` to an empty array.
    func give(_ buffer: inout [UInt8]) {
        let capacity = buffer.capacity
        guard capacity > 0 else { return }
        held.subtract(capacity, ordering: .relaxed)
        buffer.removeAll(keepingCapacity: true)
        state.withLock { state in
            guard state.idle + capacity <= Self.mostIdle else { return }
            state.idle += capacity
            // An allocator may reserve slightly more than requested.
            if capacity <= Self.small + 1024 {
                Self.move(&buffer, to: &state.small)
            } else {
                Self.move(&buffer, to: &state.large)
            }
        }
        buffer = []
    }

    /// Moves an unused buffer into the array `idle` of the pool. The buffer never has two references, because the next
    /// write to it would then copy it.
    private static func move(_ buffer: inout [UInt8], to idle: inout [[UInt8]]) {
        idle.append([])
        swap(&idle[idle.count - 1], &buffer)
    }
}
