import NIOCore
import Synchronization

/// A queue of bytes in one direction, each with its time of arrival. The queue has one reader and one writer, and
/// blocks the writer while the queue is full.
final class DelayLine: Sendable {
    /// Bytes with their time of arrival; a `nil` buffer is the end of the direction.
    struct Delivery: Sendable {
        let due: ContinuousClock.Instant
        let buffer: ByteBuffer?
    }

    /// The deliveries that were not taken yet, and the number of their bytes.
    private struct Backlog {
        var queue: [Delivery] = []
        var bytes = 0
    }

    private static let capacity = 4 << 20

    private let state = Mutex(Backlog())
    private let deliveries: AsyncStream<Void>
    private let delivered: AsyncStream<Void>.Continuation
    private let rooms: AsyncStream<Void>
    private let room: AsyncStream<Void>.Continuation

    init() {
        (deliveries, delivered) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
        (rooms, room) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
    }

    /// Adds a delivery, and waits until the queue has room for the next one.
    func put(_ delivery: Delivery) async {
        state.withLock { state in
            state.queue.append(delivery)
            state.bytes += delivery.buffer?.readableBytes ?? 0
        }
        delivered.yield()
        while !Task.isCancelled, state.withLock({ $0.bytes >= DelayLine.capacity }) {
            for await _ in rooms { break }
        }
    }

    /// Takes the next delivery, which may not be due yet. Waits while the queue is empty; `nil` if the task is
    /// cancelled.
    func next() async -> Delivery? {
        while !Task.isCancelled {
            let first = state.withLock { state -> Delivery? in
                guard !state.queue.isEmpty else { return nil }
                let first = state.queue.removeFirst()
                state.bytes -= first.buffer?.readableBytes ?? 0
                return first
            }
            if let first {
                room.yield()
                return first
            }
            for await _ in deliveries { break }
        }
        return nil
    }
}
