import Synchronization

/// A buffer of consecutive bytes, which are written in one call. A transport delivers bytes in pieces (libcurl: 16
/// KiB), and a copy of eleven pieces costs less than ten more calls.
package struct WriteStage {
    /// The capacity in bytes: the size of one read of the transport, so that a read is one call and one mark.
    package static let size = 176 << 10
    /// The size of a full piece in bytes. A shorter piece is the last one of a read of the transport.
    static let piece = 16 << 10
    /// The size in bytes below which a piece that comes alone is written at once.
    static let least = 8 << 10

    private var buffer: StageBuffer?
    /// The number of bytes that wait.
    private(set) var count = 0

    /// Returns whether no bytes wait.
    var isEmpty: Bool { count == 0 }

    /// Returns whether `more` bytes fit.
    func hasRoom(for more: Int) -> Bool { count + more <= Self.size }

    /// Appends bytes, which must fit (see `hasRoom`).
    mutating func append(_ bytes: UnsafeRawBufferPointer, from pool: StagePool) {
        let buffer = buffer ?? pool.take()
        self.buffer = buffer
        UnsafeMutableRawBufferPointer(rebasing: buffer.bytes[count...]).copyMemory(from: bytes)
        count += bytes.count
    }

    /// Calls `body` with the waiting bytes, and empties the stage, even if `body` throws.
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

/// The memory of a `WriteStage`.
///
/// `@unchecked Sendable`: a buffer belongs either to one stage or to the pool.
final class StageBuffer: @unchecked Sendable {
    let bytes = UnsafeMutableRawBufferPointer.allocate(byteCount: WriteStage.size, alignment: 4096)

    deinit { bytes.deallocate() }
}

/// The idle buffers of write stages. One for each engine thread is enough, because a stage is emptied before its
/// connection waits for more bytes.
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
