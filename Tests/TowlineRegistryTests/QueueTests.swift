import Testing
import TowlineCore
import TowlineEngine

@testable import TowlineRegistry

/// Tests of the order of the queue, its pages, and the next downloads.
@Suite struct QueueTests {
    private let state = TemporaryState()

    private func order(_ registry: SQLiteRegistry, _ change: (inout DownloadQuery) -> Void = { _ in }) async throws
        -> [RegisteredDownload]
    {
        var query = DownloadQuery()
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

    private static let filters: [@Sendable (inout DownloadQuery) -> Void] = [
        { _ in }, { $0.filters = [.paused] }, { $0.filters = [.queued, .failed] }, { $0.group = "a" },
        { $0.text = "sAmE" }, { $0.text = "ärg" }, { $0.text = "host-3" },
        {
            $0.filters = [.queued, .active, .waiting]
            $0.group = "b"
            $0.text = "files"
        },
    ]

    /// For every order, direction and filter, all pages together equal the list sorted in memory.
    @Test func pagesTogetherAreTheWholeList() async throws {
        let registry = try await state.open()
        let all = Self.mixed()
        _ = try await registry.add(all)
        for order in DownloadQuery.Order.allCases {
            let sorted = Self.sorted(all, order)
            for filter in Self.filters {
                var query = DownloadQuery()
                filter(&query)
                let expected = sorted.filter { Self.matches($0, query) }.map(\.id)
                for descending in [false, true] {
                    let found = try await self.order(registry) {
                        filter(&$0)
                        ($0.order, $0.descending) = (order, descending)
                    }
                    #expect(
                        found.map(\.id) == (descending ? expected.reversed() : expected),
                        "\(order) \(descending) \(query)")
                }
            }
        }
    }

    /// Returns 100 downloads in all states, many with equal sort keys.
    private static func mixed() -> [RegisteredDownload] {
        var generator = SeededGenerator(seed: 1)
        return (0..<100).map { number in
            var download = Sample.download(
                number, group: [nil, "a", "b"].randomElement(using: &generator) ?? nil,
                priority: Int.random(in: -1...1, using: &generator),
                name: ["Same", "other \(number)", "ÄRGER", "same"].randomElement(using: &generator))
            if number % 9 == 0 { download.name = nil }
            download.state = RegisteredState.allCases.randomElement(using: &generator) ?? .queued
            download.completeLength = [nil, 5, 9, Int64(number)].randomElement(using: &generator) ?? nil
            download.endedAt = [nil, 5, Int64(number)].randomElement(using: &generator) ?? nil
            download.addedAt = Int64.random(in: 0...20, using: &generator)
            return download
        }
    }

    private static func sorted(_ all: [RegisteredDownload], _ order: DownloadQuery.Order) -> [RegisteredDownload] {
        func key(_ number: Int, _ download: RegisteredDownload) -> [Int] {
            switch order {
            case .queue: [-download.priority, number]
            case .added: [Int(download.addedAt), number]
            // Compares the bytes of the name. A prefix comes before longer names.
            case .name: (download.name ?? "").lowercased().utf8.map(Int.init) + [-1, number]
            case .size: [Int(download.completeLength ?? -1), number]
            case .state: [download.state.number, -download.priority, number]
            case .ended: [Int(download.endedAt ?? -1), number]
            }
        }
        return all.enumerated().map { (key($0, $1), $1) }
            .sorted { $0.0.lexicographicallyPrecedes($1.0) }.map(\.1)
    }

    private static func matches(_ download: RegisteredDownload, _ query: DownloadQuery) -> Bool {
        guard query.filters.isEmpty || query.filters.contains(download.state) else { return false }
        guard query.group == nil || query.group == download.group else { return false }
        guard let text = query.text?.lowercased() else { return true }
        return download.name?.lowercased().contains(text) == true || download.source.lowercased().contains(text)
    }

    @Test func searchSeesNoSecrets() async throws {
        let registry = try await state.open()
        _ = try await registry.add([Sample.download(1), Sample.download(2)])
        #expect(try await order(registry) { $0.text = "part=2" }.map(\.id) == [Sample.id(2)])
        #expect(try await order(registry) { $0.text = "secret2" }.isEmpty)
        #expect(try await order(registry) { $0.text = "secret" }.isEmpty)
    }

    /// A letter with several lower-case forms is found in each of them.
    @Test func searchIgnoresTheFormsOfLetters() async throws {
        let registry = try await state.open()
        _ = try await registry.add(
            ["Straße", "ΟΔΟΣ.iso", "İzmir", "I\u{307}zmit"].enumerated().map {
                Sample.download($0.offset, name: $0.element)
            })
        let texts = [
            ("STRASSE", [0]), ("straße", [0]), ("οδος", [1]), ("ΟΔΟΣ", [1]), ("izmi", [2, 3]), ("İZMİT", [3]),
        ]
        for (text, numbers) in texts {
            let found = try await order(registry) { ($0.text, $0.order) = (text, .added) }
            #expect(Set(found.map(\.id)) == Set(numbers.map { Sample.id($0) }), "\(text)")
        }
    }

    @Test func aCursorOfAnotherOrderIsRefused() async throws {
        let registry = try await state.open()
        _ = try await registry.add((0..<5).map { Sample.download($0) })
        var query = DownloadQuery()
        query.limit = 2
        query.order = .name
        let cursor = try #require(try await registry.page(query).next)
        query.order = .size
        for cursor in [
            cursor, DownloadCursor(text: ""), DownloadCursor(text: "size+.1"), DownloadCursor(text: "size+.x.1"),
        ] {
            query.cursor = cursor
            await #expect(throws: TowlineError.self) { try await registry.page(query) }
        }
    }

    /// Random moves have the same result as in an array.
    @Test func movesAreThoseOfAList() async throws {
        let registry = try await state.open()
        var list = (0..<20).map { Sample.id($0) }
        _ = try await registry.add((0..<20).map { Sample.download($0) })
        var generator = SeededGenerator(seed: 2)
        for round in 0..<400 {
            let moved = list.remove(at: Int.random(in: 0..<20, using: &generator))
            // Most moves go to the same position, so that no free place values remain between neighbours.
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

    /// The three ways to find the next downloads agree with a filter over the complete list.
    @Test(arguments: [1, 5, 400, 1_500])
    func theNextOnesAreTheFirstThatMayRun(hosts: Int) async throws {
        let registry = try await state.open()
        var generator = SeededGenerator(seed: UInt64(hosts))
        // The first 1,200 downloads have the same host, so that the front of the queue is not sufficient.
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
