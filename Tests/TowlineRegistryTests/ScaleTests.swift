import Foundation
import Testing
import TowlineCore
import TowlineEngine

@testable import TowlineRegistry

/// Operations on a long list take as long as on a short list. The normal run has 20,000 downloads and measures the CPU
/// time of a debug build. `TOWLINE_TORTURE`, meant for release builds, uses a million downloads.
@Suite(.serialized) struct ScaleTests {
    private static let isTorture = getenv("TOWLINE_TORTURE") != nil
    private static let count = isTorture ? 1_000_000 : 20_000

    private static func cpu() -> Double {
        var usage = rusage()
        getrusage(__rusage_who_t(RUSAGE_SELF.rawValue), &usage)
        return Double(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec)
            + Double(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6
    }

    /// Returns the current resident memory in bytes.
    private static func memory() -> Int {
        let words = (try? String(contentsOfFile: "/proc/self/statm", encoding: .utf8))?.split(separator: " ") ?? []
        return words.count > 1 ? (Int(words[1]) ?? 0) * 4096 : 0
    }

    private static func measure(_ name: String, _ body: () async throws -> Void) async throws -> Double {
        let clock = ContinuousClock()
        let (start, before) = (clock.now, cpu())
        try await body()
        let (cpu, wall) = (cpu() - before, clock.now - start)
        print("registry, \(count) downloads: \(name): \(Int(cpu * 1e6)) µs of CPU, \(wall)")
        return cpu
    }

    @Test func aLongListCostsWhatAShortOneDoes() async throws {
        let slower = Self.isTorture ? 1.0 : 8.0
        let state = TemporaryState()
        let before = Self.memory()
        var registry = try await state.open()
        var adding = 0.0
        for start in stride(from: 0, to: Self.count, by: 5_000) {
            let downloads = (start..<start + 5_000).map {
                Sample.download($0, group: $0 % 10 == 0 ? "films" : nil, priority: $0 % 3)
            }
            let before = Self.cpu()
            _ = try await registry.add(downloads)
            adding += Self.cpu() - before
        }
        print("registry, \(Self.count) downloads: adding: \(adding / Double(Self.count) * 1e6) µs of CPU each")
        #expect(adding / Double(Self.count) < 100e-6 * slower)
        _ = try await Self.measure("changing the state of all") {
            for (from, to) in [(RegisteredState.queued, RegisteredState.paused), (.paused, .queued)] {
                let changed = try await registry.changeAll(from: [from], to: to, group: nil)
                #expect(changed == Self.count)
            }
        }
        await registry.close()
        let opening = try await Self.measure("opening") { registry = try await state.open() }
        #expect(opening < 1)
        for order in DownloadQuery.Order.allCases {
            for descending in [false, true] {
                var query = DownloadQuery()
                (query.order, query.descending) = (order, descending)
                // Also measures a later page, with a cursor.
                query.cursor = nil
                let first = try await registry.page(query)
                query.cursor = first.next
                let cost = try await Self.measure("a page by \(order)\(descending ? ", backwards" : "")") {
                    let page = try await registry.page(query)
                    #expect(page.downloads.count == 100)
                }
                #expect(cost < 0.020 * slower)
            }
        }
        try await filters(registry)
        let totals = try await Self.measure("totals") { _ = try await registry.totals() }
        #expect(totals < 0.020)
        let memory = Self.memory() - before
        print("registry, \(Self.count) downloads: \(memory >> 20) MiB more resident than before")
        #expect(memory < 100 << 20)
        await registry.close()
        print("registry, \(Self.count) downloads: \(FileCall.size(path: state.database) >> 20) MiB on disk")
    }

    private func filters(_ registry: SQLiteRegistry) async throws {
        var query = DownloadQuery()
        query.text = "iso"
        _ = try await Self.measure("a text that all have") { _ = try await registry.page(query) }
        query.text = "in none of them"
        _ = try await Self.measure("a text that none has") { _ = try await registry.page(query) }
        query = DownloadQuery()
        query.filters = [.failed]
        _ = try await Self.measure("a state that none has") { _ = try await registry.page(query) }
        query.filters = [.queued]
        _ = try await Self.measure("a state that all have") { _ = try await registry.page(query) }
        query = DownloadQuery()
        query.group = "films"
        _ = try await Self.measure("a group of a tenth") { _ = try await registry.page(query) }
        query.order = .size
        _ = try await Self.measure("a group of a tenth by size") { _ = try await registry.page(query) }
        let hosts = Set((0..<6).map { "https://host-\($0).example:443" })
        let next = try await Self.measure("the next one, six of seven hosts blocked") {
            let found = try await registry.nextQueued(limit: 10, blockedHosts: hosts, blockedGroups: [])
            #expect(found.count == 10)
        }
        #expect(next < 0.2)
        let none = try await Self.measure("the next one, all hosts blocked") {
            let found = try await registry.nextQueued(
                limit: 10, blockedHosts: hosts.union(["https://host-6.example:443"]), blockedGroups: [])
            #expect(found.isEmpty)
        }
        #expect(none < 0.2)
    }
}
