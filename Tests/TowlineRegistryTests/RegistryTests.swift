import Testing
import TowlineCore
import TowlineEngine

@testable import TowlineRegistry

/// Tests of each call of the `Registry` protocol.
@Suite struct RegistryTests {
    private let state = TemporaryState()

    @Test func whatWasAddedIsThereAfterReopening() async throws {
        var download = Sample.download(3, group: "films", priority: -4)
        download.reason = "because"
        download.reasonCode = "transient"
        download.status = 503
        download.waitUntil = 77
        download.completeLength = 1 << 40
        download.heldBytes = 12
        download.endedAt = 99
        download.state = .waiting
        let registry = try await state.open()
        #expect(try await registry.add([download, Sample.download(4)]) == [.added, .added])
        #expect(registry.notices.isEmpty)
        await registry.close()
        let again = try await state.open()
        #expect(try await again.download(download.id) == download)
        #expect(try await again.download(Sample.id(4)) == Sample.download(4))
        #expect(try await again.download(Sample.id(5)) == nil)
        #expect(again.notices.isEmpty)
    }

    @Test func severalAreReadInTheOrderAskedWithoutThoseThatAreNot() async throws {
        let registry = try await state.open()
        _ = try await registry.add((1...9).map { Sample.download($0) })
        let asked = [7, 12, 3, 9].map { Sample.id($0) }
        #expect(try await registry.downloads(asked) == [7, 3, 9].map { Sample.download($0) })
        #expect(try await registry.downloads([]).isEmpty)
        await registry.close()
    }

    @Test func theSameIdentityIsTheSameDownload() async throws {
        let registry = try await state.open()
        var other = Sample.download(2)
        other.identity = Sample.download(1).identity
        #expect(
            try await registry.add([Sample.download(1), other, Sample.download(3)])
                == [.added, .existing(Sample.id(1)), .added])
        #expect(try await registry.add([other]) == [.existing(Sample.id(1))])
        #expect(try await registry.totals().counts == [.queued: 2])
    }

    @Test func aChangeSetsWhatItNamesAndNothingElse() async throws {
        let registry = try await state.open()
        var expected = Sample.download(1, group: "a")
        _ = try await registry.add([expected, Sample.download(2)])
        var change = RegistryChange(expected.id)
        change.state = .init(.failed, reason: "no", reasonCode: "notFound", status: 404, endedAt: 5)
        change.completeLength = .some(100)
        change.heldBytes = 40
        try await registry.apply([change, RegistryChange(Sample.id(99), state: .init(.paused))])
        expected.state = .failed
        (expected.reason, expected.reasonCode, expected.status, expected.endedAt) = ("no", "notFound", 404, 5)
        (expected.completeLength, expected.heldBytes) = (100, 40)
        #expect(try await registry.download(expected.id) == expected)

        change = RegistryChange(expected.id, state: .init(.queued))
        change.name = "Other"
        change.source = "https://b.example/x"
        change.host = "https://b.example:443"
        change.options = [1, 0, 255]
        change.metadata = ["k": "\u{0}\"'ü"]
        change.group = .some(nil)
        change.priority = 7
        change.completeLength = .some(nil)
        try await registry.apply([change])
        expected.state = .queued
        (expected.reason, expected.reasonCode, expected.status, expected.endedAt) = (nil, nil, nil, nil)
        (expected.name, expected.source, expected.host) = ("Other", "https://b.example/x", "https://b.example:443")
        (expected.options, expected.metadata) = ([1, 0, 255], ["k": "\u{0}\"'ü"])
        (expected.group, expected.priority, expected.completeLength) = (nil, 7, nil)
        #expect(try await registry.download(expected.id) == expected)
        #expect(try await registry.download(Sample.id(2)) == Sample.download(2))
    }

    @Test func theTimelineIsInOrderAndGoesWithItsDownload() async throws {
        let registry = try await state.open()
        _ = try await registry.add([Sample.download(1), Sample.download(2)])
        for time in 1...5 {
            try await registry.apply([
                RegistryChange(
                    Sample.id(1), entries: [TimelineNote(time: Int64(time), kind: "tick", message: "m\(time)")]),
                RegistryChange(Sample.id(2), entries: [TimelineNote(time: Int64(time), kind: "tock", message: "n")]),
            ])
        }
        let first = try await registry.timeline(of: Sample.id(1), after: 0, limit: 3)
        #expect(first.map(\.message) == ["m1", "m2", "m3"])
        let rest = try await registry.timeline(of: Sample.id(1), after: first[2].number, limit: 100)
        #expect(rest.map(\.time) == [4, 5])
        try await registry.remove([Sample.id(1)])
        #expect(try await registry.timeline(of: Sample.id(1), after: 0, limit: 100).isEmpty)
        #expect(try await registry.download(Sample.id(1)) == nil)
        #expect(try await registry.timeline(of: Sample.id(2), after: 0, limit: 100).count == 5)
        // The numbers of removed notes are not used again.
        try await registry.apply([
            RegistryChange(Sample.id(2), entries: [TimelineNote(time: 9, kind: "tock", message: "n")])
        ])
        let last = try await registry.timeline(of: Sample.id(2), after: 0, limit: 100)
        #expect(last.map(\.number) == last.map(\.number).sorted() && Set(last.map(\.number)).count == 6)
    }

    @Test func totalsFollowEveryChange() async throws {
        let registry = try await state.open()
        _ = try await registry.add((0..<20).map { Sample.download($0) })
        for number in 0..<10 {
            var change = RegistryChange(Sample.id(number), state: .init(number < 5 ? .finished : .paused, endedAt: 3))
            change.completeLength = .some(1000)
            change.heldBytes = Int64(number * 100)
            try await registry.apply([change])
        }
        try await registry.remove([Sample.id(0), Sample.id(9), Sample.id(19)])
        #expect(try await registry.changeAll(from: [.paused, .queued], to: .cancelled, group: nil) == 13)
        let totals = try await registry.totals()
        #expect(totals.counts == [.finished: 4, .cancelled: 13])
        #expect(totals.heldBytes == 100 * (1 + 2 + 3 + 4 + 5 + 6 + 7 + 8))
        #expect(totals.completeLength == 8000)
    }

    /// Servers may claim any length, so the sums must not overflow.
    @Test func sumsOfImpossibleLengthsDoNotOverflow() async throws {
        let registry = try await state.open()
        _ = try await registry.add((0..<4).map { Sample.download($0) })
        for number in 0..<4 {
            var change = RegistryChange(Sample.id(number))
            change.completeLength = .some(.max)
            try await registry.apply([change])
        }
        #expect(try await registry.totals().completeLength == .max)
        for number in 0..<3 {
            var change = RegistryChange(Sample.id(number))
            change.completeLength = .some(5)
            try await registry.apply([change])
        }
        try await registry.remove([Sample.id(3)])
        #expect(try await registry.totals().completeLength == 15)
    }

    @Test func changeAllChangesOnlyTheGroupWhenOneIsNamed() async throws {
        let registry = try await state.open()
        _ = try await registry.add([
            Sample.download(1, group: "a"), Sample.download(2, group: "b"), Sample.download(3),
        ])
        #expect(try await registry.changeAll(from: [.queued], to: .paused, group: "a") == 1)
        #expect(try await registry.totals().counts == [.queued: 2, .paused: 1])
        #expect(try await registry.changeAll(from: [], to: .paused, group: nil) == 0)
        #expect(try await registry.changeAll(from: [.queued, .paused], to: .active, group: nil) == 3)
    }

    @Test func valuesAndHostsAreKept() async throws {
        let registry = try await state.open()
        try await registry.setValue("1", for: "limit.a_b")
        try await registry.setValue("2", for: "limit.axb")
        try await registry.setValue("3", for: "rate")
        try await registry.setValue("4", for: "rate")
        #expect(try await registry.values(prefix: "limit.a_") == ["limit.a_b": "1"])
        #expect(try await registry.values(prefix: "") == ["limit.a_b": "1", "limit.axb": "2", "rate": "4"])
        try await registry.setValue(nil, for: "rate")
        #expect(try await registry.values(prefix: "rate").isEmpty)
        try await registry.setHostKnowledge("slow", for: "https://a.example:443")
        try await registry.setHostKnowledge("fast", for: "https://a.example:443")
        #expect(try await registry.hostKnowledge() == ["https://a.example:443": "fast"])
    }

    @Test func theLeastRecentlyWrittenHostsAreForgotten() async throws {
        let registry = try await state.open()
        try await registry.setHostKnowledge("first", for: "first")
        try await registry.setHostKnowledge("second", for: "second")
        try await registry.setHostKnowledge("first", for: "first")
        await withTaskGroup(of: Void.self) { group in
            for number in 0..<9_999 {
                group.addTask { try? await registry.setHostKnowledge("x", for: "host \(number)") }
            }
        }
        let known = try await registry.hostKnowledge()
        #expect(known.count == 10_000)
        #expect(known["first"] == "first")
        #expect(known["second"] == nil)
    }

    @Test func closedMeansClosed() async throws {
        let registry = try await state.open()
        _ = try await registry.add([Sample.download(1)])
        await registry.close()
        await registry.close()
        await #expect(throws: TowlineError.self) { try await registry.totals() }
        await #expect(throws: TowlineError.self) { try await registry.add([Sample.download(2)]) }
        #expect(state.names == ["directories", "registry.lock", "registry.sqlite", "reserve"])
    }

    /// Cancelling the task that waits for a write does not undo the write.
    @Test func cancellingTheCallerDoesNotCancelTheWrite() async throws {
        let registry = try await state.open()
        let task = Task {
            while !Task.isCancelled { await Task.yield() }
            return try await registry.add([Sample.download(1)])
        }
        task.cancel()
        #expect(try await task.value == [.added])
        #expect(try await registry.totals().counts == [.queued: 1])
    }

    /// Changes that share a transaction succeed or fail separately.
    @Test func oneThatFailsDoesNotTakeTheOthersWithIt() async throws {
        let registry = try await state.open()
        _ = try await registry.add([Sample.download(1), Sample.download(2, priority: 1)])
        let failures = await withTaskGroup(of: Bool.self) { group in
            for number in 10..<110 {
                group.addTask {
                    do {
                        if number % 2 == 0 {
                            _ = try await registry.add([Sample.download(number)])
                        } else {
                            try await registry.move(Sample.id(1), before: Sample.id(2))
                        }
                        return false
                    } catch {
                        return (error as? TowlineError)?.code == .unusableOption
                    }
                }
            }
            return await group.reduce(0) { $0 + ($1 ? 1 : 0) }
        }
        #expect(failures == 50)
        #expect(try await registry.totals().counts == [.queued: 52])
    }
}
