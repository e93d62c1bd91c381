import Synchronization

/// A pool of buffers for small files while they arrive. Without it, one thread would allocate a buffer and another
/// would free it, and both would contend for the allocator's lock.
final class BufferPool: Sendable {
    /// The most bytes in use at once. Beyond that, a response is written to a part file from the beginning.
    static let mostHeld = 32 << 20
    /// The most bytes that are kept for reuse.
    private static let mostIdle = 8 << 20
    /// The capacity in bytes above which a buffer is large. Small responses do not take large buffers.
    private static let small = 64 << 10
    /// The number of bytes to reserve at first while many bytes are in use.
    private static let first = 16 << 10

    private struct State {
        var small: [[UInt8]] = []
        var large: [[UInt8]] = []
        var idle = 0

        /// Takes an idle large buffer with at most four times the capacity `count`; `nil` if none.
        mutating func takeLarge(_ count: Int) -> [UInt8]? {
            large.lastIndex { $0.capacity / 4 <= count }.map { large.remove(at: $0) }
        }
    }

    private let state = Mutex(State())
    private let held = Atomic<Int>(0)

    /// Replaces an empty buffer with one of capacity `count`, or less while many bytes are in use: with a long round
    /// trip, heads arrive long before bodies.
    ///
    /// - Returns: `false` if too many bytes are in use.
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

    /// Grows a taken buffer to the capacity `count`. Returns `false` if too many bytes are in use.
    func grow(_ buffer: inout [UInt8], to count: Int) -> Bool {
        let old = buffer.capacity
        guard count > old else { return true }
        guard hasRoom(for: count - old) else { return false }
        buffer.reserveCapacity(max(count, 2 * old))
        held.add(buffer.capacity - old, ordering: .relaxed)
        return true
    }

    private func hasRoom(for more: Int) -> Bool { held.load(ordering: .relaxed) + more <= Self.mostHeld }

    /// Counts a buffer that was allocated elsewhere as in use.
    func adopt(_ buffer: [UInt8]) { held.add(buffer.capacity, ordering: .relaxed) }

    /// Puts a buffer back into the pool, and leaves an empty array.
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

    /// Moves a buffer without a second reference at any moment: with one, the next write to the buffer would copy it.
    private static func move(_ buffer: inout [UInt8], to idle: inout [[UInt8]]) {
        idle.append([])
        swap(&idle[idle.count - 1], &buffer)
    }
}
