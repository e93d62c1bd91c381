/// The attempts that wait for a point in time, the next one first: a binary heap in which every attempt knows its
/// place, so that a deadline is moved or taken out in O(log n) and none is left behind.
struct DeadlineQueue {
    private var heap: [Attempt] = []

    /// The earliest deadline; `never` if there is none.
    var next: MonotonicTime { heap.first?.deadline ?? .never }

    /// Gives `attempt` a deadline in place of the one it had. `never` takes it out.
    mutating func set(_ deadline: MonotonicTime, for attempt: Attempt) {
        remove(attempt)
        guard deadline < .never else { return }
        attempt.deadline = deadline
        attempt.deadlineIndex = heap.count
        heap.append(attempt)
        rise(from: heap.count - 1)
    }

    /// Takes `attempt` out; one that has no deadline is no error.
    mutating func remove(_ attempt: Attempt) {
        guard let index = attempt.deadlineIndex else { return }
        attempt.deadlineIndex = nil
        attempt.deadline = .never
        let last = heap.removeLast()
        guard last !== attempt else { return }
        heap[index] = last
        last.deadlineIndex = index
        rise(from: index)
        sink(from: last.deadlineIndex ?? index)
    }

    /// Takes out the attempt whose deadline came first, if that is not after `now`.
    mutating func popExpired(at now: MonotonicTime) -> Attempt? {
        guard let first = heap.first, first.deadline <= now else { return nil }
        remove(first)
        return first
    }

    private mutating func rise(from start: Int) {
        var index = start
        while index > 0, heap[index].deadline < heap[(index - 1) / 2].deadline {
            exchange(index, (index - 1) / 2)
            index = (index - 1) / 2
        }
    }

    private mutating func sink(from start: Int) {
        var index = start
        while true {
            var least = index
            for child in [2 * index + 1, 2 * index + 2]
            where child < heap.count && heap[child].deadline < heap[least].deadline { least = child }
            guard least != index else { return }
            exchange(index, least)
            index = least
        }
    }

    private mutating func exchange(_ left: Int, _ right: Int) {
        heap.swapAt(left, right)
        heap[left].deadlineIndex = left
        heap[right].deadlineIndex = right
    }
}
