import Synchronization

/// A buffer that collects consecutive bytes, to write them in one call. A transport delivers bytes in small buffers
/// (libcurl: 16 KiB), and a copy of eleven of them costs less than ten more calls.
package struct WriteStage {
    /// The capacity of the buffer in bytes: the size of one read of the transport, so that each read needs one write
    /// and one update of the journal.
    package static let size = 176 << 10
    /// The size in bytes of a full buffer from the transport. A shorter buffer is the last one of a read, after which
    /// the collected bytes are written.
    static let piece = 16 << 10
    /// The size in bytes below which a received buffer is written at once, without a copy into this one, if no bytes
    /// wait here.
    static let least = 8 << 10

    private var buffer: StageBuffer?
    /// The number of received bytes in the buffer, which wait to be written.
    private(set) var count = 0

    /// Returns whether the buffer is empty: no received bytes wait to be written.
    var isEmpty: Bool { count == 0 }

    /// Returns whether `more` bytes fit into the buffer. If not, the caller must first write the waiting bytes.
    func hasRoom(for more: Int) -> Bool { count + more <= Self.size }

    /// Appends received bytes, which must fit (see `hasRoom`). Takes a memory block from `pool` if the buffer is empty.
    mutating func append(_ bytes: UnsafeRawBufferPointer, from pool: StagePool) {
        let buffer = buffer ?? pool.take()
        self.buffer = buffer
        UnsafeMutableRawBufferPointer(rebasing: buffer.bytes[count...]).copyMemory(from: bytes)
        count += bytes.count
    }

    /// Calls `body` with the collected bytes to write them, and empties the buffer even if `body` throws. Returns its
    /// memory to `pool`.
    mutating func empty<Failure: Error>(
        into pool: StagePool, _ body: (UnsafeRawBufferPointer) throws(Failure) -> Void
    ) throws(Failure) {
        guard let buffer else { return }
        let waiting = UnsafeRawBufferPointer(rebasing: buffer.bytes[..<count])
        (self.buffer, count) = (nil, 0)
        defer { pool.give(buffer) }
        try body(waiting)
    }
}

/// The memory block of 176 KiB in which a `WriteStage` collects received bytes.
final class StageBuffer: @unchecked Sendable {
    let bytes = UnsafeMutableRawBufferPointer.allocate(byteCount: WriteStage.size, alignment: 4096)

    deinit { bytes.deallocate() }
}

/// The unused memory blocks of write stages, the buffers that collect received bytes. One block for each network thread
/// is enough, because a stage is emptied before its connection waits for more bytes.
final class StagePool: Sendable {
    private static let most = 4

    private let idle = Mutex<[StageBuffer]>([])

    func take() -> StageBuffer { idle.withLock { $0.popLast() } ?? StageBuffer() }

    func give(_ buffer: StageBuffer) {
        idle.withLock { idle in
            if idle.count < Self.most { idle.append(buffer) }
        }
    }
}
