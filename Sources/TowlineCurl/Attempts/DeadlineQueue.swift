/// The attempts that have a deadline, such as a timeout or the end of a pause, the earliest first. The queue is a
/// binary heap in which every attempt knows its index, so that a deadline can be moved or removed in O(log n).
struct DeadlineQueue {
    /// The deadline of one attempt, and the attempt's index in the heap of the queue.
    struct Entry {
        fileprivate var time = MonotonicTime.never
        fileprivate var index: Int?
    }

    private var heap: [Attempt] = []

    /// The earliest deadline of all attempts; `never` if the queue is empty.
    var next: MonotonicTime { heap.first?.deadline.time ?? .never }

    /// Sets the deadline of `attempt` and replaces the previous one. `never` removes the attempt.
    mutating func set(_ deadline: MonotonicTime, for attempt: Attempt) {
        remove(attempt)
        guard deadline < .never else { return }
        attempt.deadline.time = deadline
        attempt.deadline.index = heap.count
        heap.append(attempt)
        rise(from: heap.count - 1)
    }

    /// Removes `attempt` from the queue. Does nothing if the attempt has no deadline.
    mutating func remove(_ attempt: Attempt) {
        guard let index = attempt.deadline.index else { return }
        attempt.deadline.index = nil
        attempt.deadline.time = .never
        let last = heap.removeLast()
        guard last !== attempt else { return }
        heap[index] = last
        last.deadline.index = index
        rise(from: index)
        sink(from: last.deadline.index ?? index)
    }

    /// Removes and returns the attempt with the earliest deadline; `nil` if no deadline is at or before `now`.
    mutating func popExpired(at now: MonotonicTime) -> Attempt? {
        guard let first = heap.first, first.deadline.time <= now else { return nil }
        remove(first)
        return first
    }

    private mutating func rise(from start: Int) {
        var index = start
        while index > 0, heap[index].deadline.time < heap[(index - 1) / 2].deadline.time {
            exchange(index, (index - 1) / 2)
            index = (index - 1) / 2
        }
    }

    private mutating func sink(from start: Int) {
        var index = start
        while true {
            var least = index
            for child in [2 * index + 1, 2 * index + 2]
            where child < heap.count && heap[child].deadline.time < heap[least].deadline.time { least = child }
            guard least != index else { return }
            exchange(index, least)
            index = least
        }
    }

    private mutating func exchange(_ left: Int, _ right: Int) {
        heap.swapAt(left, right)
        heap[left].deadline.index = left
        heap[right].deadline.index = right
    }
}
