import Synchronization

/// Bytes that follow one another, put together to be written in one call: a transport hands them over in pieces, libcurl in
/// such of 16 KiB, and to copy eleven of those costs less than ten more calls do.
package struct WriteStage {
    /// So many bytes at most: what is read at once, so that it is one call and one mark.
    package static let size = 176 << 10
    /// A shorter piece is the last one of what a transport has read: it hands over whole ones before.
    static let piece = 16 << 10
    /// A shorter piece that comes alone is written at once.
    static let least = 8 << 10

    private var buffer: StageBuffer?
    /// How many bytes wait.
    private(set) var count = 0

    /// Whether nothing waits.
    var isEmpty: Bool { count == 0 }

    /// Whether so many more can wait.
    func hasRoom(for more: Int) -> Bool { count + more <= Self.size }

    /// Adds bytes for which there is room.
    mutating func append(_ bytes: UnsafeRawBufferPointer, from pool: StagePool) {
        let buffer = buffer ?? pool.take()
        self.buffer = buffer
        UnsafeMutableRawBufferPointer(rebasing: buffer.bytes[count...]).copyMemory(from: bytes)
        count += bytes.count
    }

    /// Calls `body` with what waits, which nobody does any more then.
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

/// Room for a `WriteStage`.
///
/// `@unchecked Sendable`: belongs to whoever has taken it, and to the pool meanwhile.
final class StageBuffer: @unchecked Sendable {
    let bytes = UnsafeMutableRawBufferPointer.allocate(byteCount: WriteStage.size, alignment: 4096)

    deinit { bytes.deallocate() }
}

/// Room for those that are being filled: one for each engine thread, since each is empty before its connection rests.
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
