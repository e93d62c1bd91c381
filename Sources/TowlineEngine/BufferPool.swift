import Synchronization

/// Room for small files while they come, used again: a buffer that one thread takes and another frees would have both at the
/// allocator's lock.
final class BufferPool: Sendable {
    /// So many bytes are held at once. What comes beyond that has a part file from the beginning.
    static let mostHeld = 32 << 20
    /// So many wait to be used again.
    private static let mostIdle = 8 << 20
    /// Room for more than that is large: what is small does not take it.
    private static let small = 64 << 10
    /// So much is had at first where many are held.
    private static let first = 16 << 10

    private struct State {
        var small: [[UInt8]] = []
        var large: [[UInt8]] = []
        var idle = 0

        /// One that is not much too large.
        mutating func takeLarge(_ count: Int) -> [UInt8]? {
            large.lastIndex { $0.capacity / 4 <= count }.map { large.remove(at: $0) }
        }
    }

    private let state = Mutex(State())
    private let held = Atomic<Int>(0)

    /// Makes an empty buffer one with room for `count` bytes, or for some of them where many are held: from far away heads come
    /// long before bodies.
    ///
    /// - Returns: `false` if too many are held already.
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

    /// Makes room for `count` bytes in all in a buffer that was taken; `false` if too many are held already.
    func grow(_ buffer: inout [UInt8], to count: Int) -> Bool {
        let old = buffer.capacity
        guard count > old else { return true }
        guard hasRoom(for: count - old) else { return false }
        buffer.reserveCapacity(max(count, 2 * old))
        held.add(buffer.capacity - old, ordering: .relaxed)
        return true
    }

    private func hasRoom(for more: Int) -> Bool { held.load(ordering: .relaxed) + more <= Self.mostHeld }

    /// Counts one that was made elsewhere.
    func adopt(_ buffer: [UInt8]) { held.add(buffer.capacity, ordering: .relaxed) }

    /// Takes a buffer back, and leaves an empty one.
    func give(_ buffer: inout [UInt8]) {
        let capacity = buffer.capacity
        guard capacity > 0 else { return }
        held.subtract(capacity, ordering: .relaxed)
        buffer.removeAll(keepingCapacity: true)
        state.withLock { state in
            guard state.idle + capacity <= Self.mostIdle else { return }
            state.idle += capacity
            // An allocator gives a little more than it was asked for.
            if capacity <= Self.small + 1024 {
                Self.move(&buffer, to: &state.small)
            } else {
                Self.move(&buffer, to: &state.large)
            }
        }
        buffer = []
    }

    /// Nobody else holds it at any moment: whoever takes it next would fill a copy.
    private static func move(_ buffer: inout [UInt8], to idle: inout [[UInt8]]) {
        idle.append([])
        swap(&idle[idle.count - 1], &buffer)
    }
}
