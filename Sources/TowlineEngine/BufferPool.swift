internal import TowlineCore
import Synchronization

/// Buffers for small files, used again: one that one thread takes and another frees would have both at the allocator's lock.
final class BufferPool: Sendable {
    /// So many wait at most, each of twice `AttemptWriter.gatherLimit` at most.
    private static let most = BatchConcurrency.most

    private let idle = Mutex<[[UInt8]]>([])

    /// An empty buffer with room for `count` bytes.
    func take(_ count: Int) -> [UInt8] {
        var buffer = idle.withLock { $0.popLast() } ?? []
        buffer.reserveCapacity(count)
        return buffer
    }

    /// Takes a buffer back, and leaves an empty one.
    func give(_ buffer: inout [UInt8]) {
        // One that a wrong answer has blown up goes.
        buffer.removeAll(keepingCapacity: buffer.capacity <= 2 * Int(AttemptWriter.gatherLimit))
        guard buffer.capacity > 0 else { return }
        idle.withLock { idle in
            guard idle.count < Self.most else { return }
            idle.append([])
            swap(&idle[idle.count - 1], &buffer)
        }
    }
}
