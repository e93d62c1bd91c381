import Testing
import TowlineCore

@testable import TowlineEngine

@Suite("How many downloads of a batch begin")
struct BatchSlotsTests {
    @Test("one whose bytes are there makes room, and so does one that is over; each once", .timeLimit(.minutes(1)))
    func room() async {
        let slots = BatchSlots(BatchConcurrency(fixed: 2))
        let first = await slots.take()
        let second = await slots.take()
        let third = Task { await slots.take() }
        while !slots.isWaitedFor { await Task.yield() }
        first.fetched(.none)
        _ = await third.value
        let fourth = Task { await slots.take() }
        while !slots.isWaitedFor { await Task.yield() }
        first.fetched(.none)
        first.ended()
        #expect(slots.isWaitedFor)
        second.ended()
        _ = await fourth.value
    }

    @Test("not more than a number wait for the disk", .timeLimit(.minutes(1)))
    func bound() async {
        let slots = BatchSlots(BatchConcurrency(fixed: 2), publishing: 5)
        var taken: [BatchSlots.Slot] = []
        for _ in 0..<7 {
            let slot = await slots.take()
            slot.fetched(.none)
            taken.append(slot)
        }
        let next = Task { await slots.take() }
        try? await Task.sleep(for: .milliseconds(50))
        #expect(slots.isWaitedFor)
        taken[0].ended()
        _ = await next.value
        #expect(!slots.isWaitedFor)
    }

    @Test("one at a time is one after the other", .timeLimit(.minutes(1)))
    func single() async {
        let slots = BatchSlots(BatchConcurrency(fixed: 1))
        let first = await slots.take()
        first.fetched(.none)
        let second = Task { await slots.take() }
        while !slots.isWaitedFor { await Task.yield() }
        try? await Task.sleep(for: .milliseconds(20))
        #expect(slots.isWaitedFor)
        first.ended()
        _ = await second.value
    }

    @Test(
        "one that waits for its next attempt makes room, and is the next when its time has come",
        .timeLimit(.minutes(1)))
    func rests() async {
        let slots = BatchSlots(BatchConcurrency(fixed: 2), publishing: 5)
        let first = await slots.take()
        let second = await slots.take()
        #expect(first.rest(for: .seconds(1), isAsked: false) && !first.rest(for: .seconds(1), isAsked: false))
        let third = await slots.take()
        #expect(!first.takeBack() && !first.takeBack())
        let fourth = Task { await slots.take() }
        while !slots.isWaitedFor { await Task.yield() }
        second.ended()
        // The place is the first one's.
        #expect(slots.isWaitedFor && first.takeBack() && slots.isWaitedFor)
        third.ended()
        let last = await fourth.value
        // One that is over wants none any more, whatever it waited for.
        #expect(last.rest(for: .seconds(1), isAsked: false) && first.rest(for: .seconds(1), isAsked: false))
        let fifth = await slots.take()
        let sixth = await slots.take()
        #expect(!first.takeBack())
        first.ended()
        last.ended()
        fifth.ended()
        _ = await slots.take()
        // Attempts that began elsewhere need none.
        #expect(sixth.rest(for: .seconds(1), isAsked: false) && sixth.takeBack(anyway: true) && sixth.takeBack())
    }

    @Test("those that wait for their next attempt are not more than there are descriptors for", .timeLimit(.minutes(1)))
    func restsBound() async {
        let slots = BatchSlots(BatchConcurrency(fixed: 2), publishing: 6)
        var resting: [BatchSlots.Slot] = []
        for _ in 0..<4 {
            resting.append(await slots.take())
            #expect(resting[resting.count - 1].rest(for: .seconds(1), isAsked: false))
        }
        let next = Task { await slots.take() }
        try? await Task.sleep(for: .milliseconds(50))
        #expect(slots.isWaitedFor)
        // One that comes back keeps no journal besides any more.
        #expect(resting[0].takeBack())
        _ = await next.value
        let after = Task { await slots.take() }
        try? await Task.sleep(for: .milliseconds(50))
        #expect(slots.isWaitedFor)
        resting[0].ended()
        _ = await after.value
    }

    @Test("a download that cannot take its place back keeps none from a new one", .timeLimit(.minutes(1)))
    func newOnesGoFirst() async {
        let slots = BatchSlots(BatchConcurrency(fixed: 2), publishing: 10)
        let first = await slots.take()
        let second = await slots.take()
        #expect(first.rest(for: .seconds(1), isAsked: true))
        let third = await slots.take()
        #expect(!first.takeBack())
        second.ended()
        _ = await slots.take()
        third.ended()
        #expect(first.takeBack())
    }

    @Test("from far away there are more, and fewer when an attempt fails", .timeLimit(.minutes(1)))
    func search() async throws {
        let slots = BatchSlots(BatchConcurrency())
        let url = try HTTPURL(parsing: "http://far.example/a")
        let origin = url.origin
        let item = BatchRoster.Item(
            number: 1, options: DownloadOptions(url: url, target: .file(directory: ".", name: nil)))
        while slots.connections(to: origin) == 16 {
            var taken: [BatchSlots.Slot] = []
            for _ in 0..<5 {
                taken.append(await slots.take())
                taken.last?.begin()
            }
            try? await Task.sleep(for: .milliseconds(45))
            for slot in taken {
                slot.fetched(.none, from: origin)
                slot.ended()
            }
        }
        #expect(slots.connections(to: origin) == 64)
        let relay = BatchRelay(item, observer: SilentBatchObserver(), slot: await slots.take())
        relay.noticed(TransferNotice(.info, .redirected, "elsewhere"))
        #expect(slots.connections(to: origin) == 64)
        relay.noticed(TransferNotice(.info, .retrying, "503"))
        #expect(slots.connections(to: origin) == 32)
        slots.refused(by: origin)
        #expect(slots.connections(to: origin) == 16)
    }
}

private final class SilentBatchObserver: BatchObserver {
    func started(_ number: Int, _ options: DownloadOptions) {}
    func progressed(_ number: Int, _ snapshot: TransferSnapshot) {}
    func noticed(_ number: Int, _ notice: TransferNotice) {}
    func ended(_ number: Int, _ result: Result<CompletedTransfer, TowlineError>) {}
}
