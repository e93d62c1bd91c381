import Synchronization
import Testing
import TowlineCore

@testable import TowlineEngine

@Suite("The number of downloads of a batch that begin")
struct BatchSlotsTests {
    /// A time that a test advances.
    private final class Time: Sendable {
        let now = Mutex(Duration.seconds(1))
    }

    @Test("a fetched download frees its slot, and so does one that ended; each once", .timeLimit(.minutes(1)))
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

    @Test("a limited number of downloads wait for the disk", .timeLimit(.minutes(1)))
    func bound() async {
        let slots = BatchSlots(BatchConcurrency(fixed: 2), publishing: 5)
        var taken: [BatchSlots.Slot] = []
        for _ in 0..<7 {
            let slot = await slots.take()
            slot.fetched(.none)
            taken.append(slot)
        }
        let next = Task { await slots.take() }
        while !slots.isWaitedFor { await Task.yield() }
        taken[0].ended()
        _ = await next.value
        #expect(!slots.isWaitedFor)
    }

    @Test("one at a time means one after the other", .timeLimit(.minutes(1)))
    func single() async {
        let slots = BatchSlots(BatchConcurrency(fixed: 1))
        let first = await slots.take()
        first.fetched(.none)
        let second = Task { await slots.take() }
        while !slots.isWaitedFor { await Task.yield() }
        first.ended()
        _ = await second.value
    }

    @Test("a download that waits for its next attempt frees its slot; new downloads go first", .timeLimit(.minutes(1)))
    func rests() async {
        let slots = BatchSlots(BatchConcurrency(fixed: 2), publishing: 5)
        let first = await slots.take()
        let second = await slots.take()
        #expect(first.rest(for: .seconds(1), isAsked: false) && !first.rest(for: .seconds(1), isAsked: false))
        let third = await slots.take()
        #expect(!first.takeBack() && !first.takeBack())
        let fourth = Task { await slots.take() }
        while !slots.isWaitedFor { await Task.yield() }
        #expect(!first.takeBack())
        second.ended()
        // The list has no more downloads after the fourth.
        let last = await fourth.value
        #expect(!first.takeBack())
        third.ended()
        #expect(first.takeBack() && first.takeBack())
        // Attempts that began elsewhere need no slot, and a download that ended does not want one.
        #expect(last.rest(for: .seconds(1), isAsked: false) && last.takeBack(anyway: true) && last.takeBack())
        #expect(last.rest(for: .seconds(1), isAsked: false))
        last.ended()
        _ = await slots.take()
    }

    @Test("a host is silent from an attempt without an answer to the next answer")
    func silence() async throws {
        let slot = await BatchSlots(BatchConcurrency()).take()
        let origins = try ["http://a.test/", "http://b.test/"].map { try HTTPURL(parsing: $0).origin }
        #expect(slot.isUnknown(origins[0]) && !slot.isSilent(origins[0]))
        slot.note(silence: true, of: origins[0])
        #expect(slot.isSilent(origins[0]) && !slot.isSilent(origins[1]) && slot.isUnknown(origins[1]))
        slot.note(silence: false, of: origins[0])
        #expect(!slot.isSilent(origins[0]) && !slot.isUnknown(origins[0]))
    }

    @Test("a long file lends its slot while its response is silent, and not before its next request")
    func longFile() async {
        let slots = BatchSlots(BatchConcurrency(fixed: 2))
        let slot = await slots.take()
        slot.isLong()
        #expect(!slot.rest(for: .seconds(60), isAsked: true))
        #expect(slot.rest(for: .seconds(60), isAsked: true, hasResponse: true))
        let others = [await slots.take(), await slots.take()]
        #expect(!slot.takeBack())
        #expect(slot.takeBack(anyway: true))
        for slot in others { slot.ended() }
    }

    @Test("downloads that wait for their next attempt are limited by the descriptors", .timeLimit(.minutes(1)))
    func restsBound() async {
        let slots = BatchSlots(BatchConcurrency(fixed: 2), publishing: 6)
        var resting: [BatchSlots.Slot] = []
        for _ in 0..<4 {
            resting.append(await slots.take())
            #expect(resting[resting.count - 1].rest(for: .seconds(1), isAsked: false))
        }
        let next = Task { await slots.take() }
        while !slots.isWaitedFor { await Task.yield() }
        // A download that takes its slot back no longer counts as waiting with an open journal.
        #expect(resting[0].takeBack())
        _ = await next.value
        let after = Task { await slots.take() }
        while !slots.isWaitedFor { await Task.yield() }
        resting[0].ended()
        _ = await after.value
    }

    @Test("a distant host gets more downloads, and fewer when an attempt fails", .timeLimit(.minutes(1)))
    func search() async throws {
        let time = Time()
        let slots = BatchSlots(BatchConcurrency()) { time.now.withLock(\.self) }
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
            time.now.withLock { $0 += .milliseconds(45) }
            for slot in taken {
                slot.fetched(.none, from: origin)
                slot.ended()
            }
        }
        #expect(slots.connections(to: origin) == 64)

        // Sixteen long files allow no more, but only while they receive bytes.
        var long: [BatchSlots.Slot] = []
        for _ in 0..<16 { long.append(await slots.take()) }
        for slot in long { slot.isLong() }
        #expect(slots.connections(to: origin) == 16)
        #expect(long[0].rest(for: .seconds(60), isAsked: true, hasResponse: true))
        #expect(slots.connections(to: origin) == 64)
        #expect(long[0].takeBack(anyway: true))
        #expect(slots.connections(to: origin) == 16)
        for slot in long { #expect(slot.rest(for: .seconds(60), isAsked: true, hasResponse: true)) }
        for slot in long { slot.ended() }
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

extension BatchSlots {
    /// Returns whether a call of `take` waits for a slot.
    fileprivate var isWaitedFor: Bool { state.withLock { $0.waiter != nil } }
}

private final class SilentBatchObserver: BatchObserver {
    func started(_ number: Int, _ options: DownloadOptions) {}
    func progressed(_ number: Int, _ snapshot: TransferSnapshot) {}
    func noticed(_ number: Int, _ notice: TransferNotice) {}
    func ended(_ number: Int, _ result: Result<CompletedTransfer, TowlineError>) {}
}
