import NIOCore
import Synchronization

/// Bytes on their way in one direction, in order, each with the time it arrives at. It has one reader and one
/// writer, and holds back the writer while it is full.
final class DelayLine: Sendable {
    /// Bytes and when they arrive; no bytes stand for the end of the direction.
    struct Delivery: Sendable {
        let due: ContinuousClock.Instant
        let buffer: ByteBuffer?
    }

    private struct State {
        var queue: [Delivery] = []
        var bytes = 0
    }

    private static let capacity = 4 << 20

    private let state = Mutex(State())
    private let deliveries: AsyncStream<Void>
    private let delivered: AsyncStream<Void>.Continuation
    private let rooms: AsyncStream<Void>
    private let room: AsyncStream<Void>.Continuation

    init() {
        (deliveries, delivered) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
        (rooms, room) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
    }

    /// Adds a delivery; returns when there is room for the next.
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

    /// The next delivery; `nil` if the task is cancelled.
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
