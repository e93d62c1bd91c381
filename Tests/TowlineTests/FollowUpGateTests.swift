import Synchronization
import Testing

@testable import Towline

/// Tests of the order and the limit of the follow-up gate.
@Suite struct FollowUpGateTests {
    private final class Order: Sendable { let numbers = Mutex<[Int]>([]) }

    @Test(.timeLimit(.minutes(1))) func inTheOrderOfComing() async throws {
        let gate = FollowUpGate()
        for _ in 0..<FollowUpGate.room { #expect(await gate.enter()) }
        let order = Order()
        try await withThrowingTaskGroup(of: Void.self) { group in
            for number in 0..<20 {
                group.addTask {
                    guard await gate.enter() else { return }
                    order.numbers.withLock { $0.append(number) }
                    gate.leave()
                }
                while gate.waiting != number + 1 { try await Task.sleep(for: .milliseconds(1)) }
            }
            #expect(order.numbers.withLock { $0 } == [])
            gate.leave()
            try await group.waitForAll()
        }
        #expect(order.numbers.withLock { $0 } == Array(0..<20))
        // Each task that left made room for another.
        #expect(await gate.enter())
        let late = Task { await gate.enter() }
        late.cancel()
        #expect(await late.value == false)
    }

    @Test(.timeLimit(.minutes(1))) func whoIsCancelledWaitsNoMore() async throws {
        let gate = FollowUpGate()
        for _ in 0..<FollowUpGate.room { #expect(await gate.enter()) }
        let (first, second) = (Task { await gate.enter() }, Task { await gate.enter() })
        while gate.waiting != 2 { try await Task.sleep(for: .milliseconds(1)) }
        first.cancel()
        #expect(await first.value == false)
        gate.leave()
        #expect(await second.value)
        #expect(gate.waiting == 0)
    }
}
