import Testing
import TowlineCore
import TowlineEngine

@testable import TowlineRegistry

/// The order of the queue, its pages, and who is next.
@Suite struct QueueTests {
    private let state = TemporaryState()

    private func order(_ registry: SQLiteRegistry, _ change: (inout RegistryQuery) -> Void = { _ in }) async throws
        -> [RegisteredDownload]
    {
        var query = RegistryQuery()
        query.limit = 7
        change(&query)
        var found: [RegisteredDownload] = []
        while true {
            let page = try await registry.page(query)
            found += page.downloads
            #expect(page.downloads.count <= query.limit)
            guard let next = page.next else { return found }
            #expect(page.downloads.count == query.limit)
            query.cursor = next
        }
    }

    /// Every order, both ways, with every filter: the pages together are what sorting everything in memory gives.
    @Test func pagesTogetherAreTheWholeList() async throws {
        let registry = try await state.open()
        var generator = SeededGenerator(seed: 1)
        var all: [RegisteredDownload] = []
        for number in 0..<100 {
            var download = Sample.download(
                number, group: [nil, "a", "b"].randomElement(using: &generator) ?? nil,
                priority: Int.random(in: -1...1, using: &generator),
                name: ["Same", "other \(number)", "ÄRGER", "same"].randomElement(using: &generator))
            if number % 9 == 0 { download.name = nil }
            download.state = RegisteredState.allCases.randomElement(using: &generator) ?? .queued
            download.completeLength = [nil, 5, 9, Int64(number)].randomElement(using: &generator) ?? nil
            download.endedAt = [nil, 5, Int64(number)].randomElement(using: &generator) ?? nil
            download.addedAt = Int64.random(in: 0...20, using: &generator)
            all.append(download)
        }
        _ = try await registry.add(all)
        let queue = all.enumerated().sorted { (-$0.element.priority, $0.offset) < (-$1.element.priority, $1.offset) }
        let place = Dictionary(uniqueKeysWithValues: queue.enumerated().map { ($1.element.id, $0) })
        func keys(_ number: Int, _ order: RegistryQuery.Order) -> (Int, String, Int) {
            let download = all[number]
            return switch order {
            case .queue: (place[download.id] ?? 0, "", 0)
            case .added: (Int(download.addedAt), "", number)
            case .name: (0, download.name?.lowercased() ?? "", number)
            case .size: (Int(download.completeLength ?? -1), "", number)
            case .state: (download.state.rawValue, "", place[download.id] ?? 0)
            case .ended: (Int(download.endedAt ?? -1), "", number)
            }
        }
        let filters: [(inout RegistryQuery) -> Void] = [
            { _ in }, { $0.states = [.paused] }, { $0.states = [.queued, .failed] }, { $0.group = "a" },
            { $0.text = "sAmE" }, { $0.text = "ärg" }, { $0.text = "host-3" },
            {
                $0.states = [.queued, .active, .waiting]
                $0.group = "b"
                $0.text = "files"
            },
        ]
        for order in RegistryQuery.Order.allCases {
            let sorted = all.indices.sorted { left, right in
                let (l, r) = (keys(left, order), keys(right, order))
                return (l.0, l.1.unicodeScalars.map(\.value).map(String.init).joined(), l.2) == (r.0, r.1, r.2)
                    ? false
                    : l.0 != r.0
                        ? l.0 < r.0
                        : l.1 != r.1 ? Array(l.1.utf8).lexicographicallyPrecedes(Array(r.1.utf8)) : l.2 < r.2
            }
            for filter in filters {
                var query = RegistryQuery()
                filter(&query)
                let expected = sorted.map { all[$0] }.filter { download in
                    (query.states.isEmpty || query.states.contains(download.state))
                        && (query.group == nil || query.group == download.group)
                        && query.text.map { text in
                            (download.name ?? "").lowercased().contains(text.lowercased())
                                || download.source.lowercased().contains(text.lowercased())
                        } != false
                }
                for descending in [false, true] {
                    let found = try await self.order(registry) {
                        filter(&$0)
                        $0.order = order
                        $0.descending = descending
                    }
                    #expect(
                        found.map(\.id) == (descending ? expected.reversed() : expected).map(\.id),
                        "\(order) \(descending) \(query)")
                }
            }
        }
    }

    @Test func searchSeesNoSecrets() async throws {
        let registry = try await state.open()
        _ = try await registry.add([Sample.download(1), Sample.download(2)])
        #expect(try await order(registry) { $0.text = "part=2" }.map(\.id) == [Sample.id(2)])
        #expect(try await order(registry) { $0.text = "secret2" }.isEmpty)
        #expect(try await order(registry) { $0.text = "secret" }.isEmpty)
    }

    @Test func aCursorOfAnotherOrderIsRefused() async throws {
        let registry = try await state.open()
        _ = try await registry.add((0..<5).map { Sample.download($0) })
        var query = RegistryQuery()
        query.limit = 2
        query.order = .name
        let cursor = try #require(try await registry.page(query).next)
        query.order = .size
        for cursor in [
            cursor, RegistryCursor(text: ""), RegistryCursor(text: "size+.1"), RegistryCursor(text: "size+.x.1"),
        ] {
            query.cursor = cursor
            await #expect(throws: TowlineError.self) { try await registry.page(query) }
        }
    }

    /// Random moves against a list that is moved the same way.
    @Test func movesAreThoseOfAList() async throws {
        let registry = try await state.open()
        var list = (0..<20).map { Sample.id($0) }
        _ = try await registry.add((0..<20).map { Sample.download($0) })
        var generator = SeededGenerator(seed: 2)
        for round in 0..<400 {
            let moved = list.remove(at: Int.random(in: 0..<20, using: &generator))
            // Mostly to the same spot, so that the places between run out.
            let index = round % 10 == 9 ? Int.random(in: 0...19, using: &generator) : 10
            let before = index < 19 ? list[index] : nil
            list.insert(moved, at: index)
            try await registry.move(moved, before: before)
            if round % 20 == 19 { #expect(try await order(registry).map(\.id) == list, "round \(round)") }
        }
        try await registry.move(list[0], before: list[0])
        try await registry.move(Sample.id(77), before: list[0])
        try await registry.move(list[0], before: Sample.id(77))
        #expect(try await order(registry).map(\.id) == list)
    }

    @Test func aNewPriorityGoesToTheEndOfIt() async throws {
        let registry = try await state.open()
        _ = try await registry.add((0..<4).map { Sample.download($0, priority: $0 == 3 ? 5 : 0) })
        var change = RegistryChange(Sample.id(0))
        change.priority = 5
        try await registry.apply([change])
        #expect(try await order(registry).map(\.id) == [3, 0, 1, 2].map { Sample.id($0) })
        await #expect(throws: TowlineError.self) { try await registry.move(Sample.id(1), before: Sample.id(0)) }
    }

    /// All three ways of finding them agree with a filter over the whole list.
    @Test(arguments: [1, 5, 400, 1_500])
    func theNextOnesAreTheFirstThatMayRun(hosts: Int) async throws {
        let registry = try await state.open()
        var generator = SeededGenerator(seed: UInt64(hosts))
        // The first 1,200 are all of one host, so that the front of the queue does not tell.
        let all = (0..<3_000).map { number in
            Sample.download(
                number, host: "http://h\(number < 1_200 ? 0 : Int.random(in: 0..<hosts, using: &generator)):80",
                group: number % 4 == 0 ? nil : "g\(number % 4)")
        }
        _ = try await registry.add(all)
        try await registry.apply(
            (0..<3_000).filter { $0 % 5 == 0 }.map { RegistryChange(Sample.id($0), state: .init(.active)) })
        for (blockedHosts, blockedGroups) in [
            (Set<String>(), Set<String>()), (["http://h0:80"], []), ([], ["g1", "g2"]),
            (["http://h0:80", "http://h1:80"], ["g3"]), (Set((0..<hosts).map { "http://h\($0):80" }), []),
        ] {
            for limit in [1, 10, 2_000] {
                let expected = all.enumerated().filter { number, download in
                    number % 5 != 0 && !blockedHosts.contains(download.host)
                        && download.group.map(blockedGroups.contains) != true
                }.prefix(limit).map(\.element.id)
                let found = try await registry.nextQueued(
                    limit: limit, blockedHosts: blockedHosts, blockedGroups: blockedGroups)
                #expect(found.map(\.id) == expected, "\(hosts) hosts, \(blockedHosts.count) blocked, limit \(limit)")
            }
        }
    }
}
