import Foundation
import Testing
import TowlineCore
import TowlineEngine

@testable import TowlineRegistry

/// Tests of power failures. `strace` records the writes of a process, which are replayed up to any point. Data without
/// a sync is kept, dropped or torn, and the registry is opened with the result.
@Suite(.serialized) struct PowerLossTests {
    private static let states = getenv("TOWLINE_TORTURE") == nil ? 300 : 10_000
    private static let strace = "/usr/bin/strace"

    private static func canTrace() -> Bool {
        guard let child = try? Child(strace, ["-o", "/dev/null", "-e", "trace=none", "/bin/true"]) else { return false }
        _ = child.finish()
        return child.process.terminationStatus == 0
    }

    @Test(.enabled("needs strace and the right to trace") { canTrace() })
    func whatReturnedIsThere() async throws {
        var tally = Tally()
        var seed: UInt64 = 1
        while tally.states < Self.states {
            try await explore(seed, ignored: nil, statesPerLog: Self.states / 6, &tally)
            seed += 1
        }
        print(
            "registry, power loss: \(tally.states) states of \(tally.logs) logs, \(tally.violations.count) violations")
        #expect(tally.violations.isEmpty, "\(tally.violations.prefix(5))")
        // Mostly empty states would make the test meaningless.
        #expect(tally.downloads > tally.states * 10)
    }

    /// The checker detects lost data: without the syncs of the log (as with `synchronous = NORMAL`), or of the
    /// database, it finds broken guarantees.
    @Test(
        .enabled("needs strace and the right to trace") { canTrace() },
        arguments: ["registry.sqlite-wal", "registry.sqlite"])
    func eachSyncIsNeeded(_ file: String) async throws {
        var tally = Tally()
        var seed: UInt64 = 1
        while tally.violations.isEmpty, seed < 6 {
            try await explore(seed, ignored: file, statesPerLog: 100, &tally)
            seed += 1
        }
        print("without the syncs of \(file): \(tally.violations.first ?? "nothing") after \(tally.states) states")
        #expect(!tally.violations.isEmpty)
    }

    private struct Tally {
        var states = 0
        var logs = 0
        var downloads = 0
        var violations: [String] = []
    }

    /// Runs two processes: the first ends normally or is killed, and the second continues with its files.
    private func explore(_ seed: UInt64, ignored: String?, statesPerLog: Int, _ tally: inout Tally) async throws {
        let place = TemporaryState()
        var model = Model()
        var base: [String: [UInt8]] = [:]
        for life in 0..<2 {
            let log = try record(place, seed: seed * 2 + UInt64(life), isKilled: seed % 2 == 0, base)
            var generator = SeededGenerator(seed: seed)
            var points = (0..<statesPerLog / 2).map { _ in Int.random(in: 0...log.events.count, using: &generator) }
            points.sort()
            var disk = ReplayedDisk(base, ignoringSyncsOf: ignored)
            var done = 0
            for point in points {
                while done < point {
                    disk.apply(log.events[done])
                    if case .say(let line) = log.events[done] { model.hear(line) }
                    done += 1
                }
                let problems = try await check(disk.strike(&generator), model, &tally)
                tally.violations += problems.map { "seed \(seed), life \(life), event \(point): \($0)" }
                tally.states += 1
            }
            for event in log.events[done...] { if case .say(let line) = event { model.hear(line) } }
            tally.logs += 1
            base = [:]
            for name in place.names where !name.hasSuffix("-shm") { base[name] = place.bytes(name) }
        }
    }

    private func record(_ place: TemporaryState, seed: UInt64, isKilled: Bool, _ base: [String: [UInt8]]) throws
        -> WriteLog
    {
        let trace = place.path + "/trace"
        let child = try Child(
            Self.strace,
            WriteLog.arguments(output: trace) + [Child.victim, place.directory, "\(seed)", "60"]
                + (isKilled ? ["hold"] : []))
        if isKilled {
            #expect(child.wait(for: "done"))
            // Kills the victim itself, not only the tracer. The lock file contains the process number.
            let line = String(decoding: place.bytes("registry.lock"), as: UTF8.self)
            if let process = line.split(separator: " ").first.flatMap({ Int32($0) }) { kill(process, SIGKILL) }
        }
        let said = child.finish()
        if !isKilled { #expect(said.hasSuffix("closed\n")) }
        return WriteLog(readFile(trace), directory: place.directory, names: Set(base.keys))
    }

    /// Opens the registry with the given files and compares its contents with the expected contents.
    private func check(_ image: [String: [UInt8]], _ model: Model, _ tally: inout Tally) async throws -> [String] {
        let place = TemporaryState()
        mkdir(place.directory, 0o700)
        for (name, bytes) in image { writeFile(place.directory + "/" + name, bytes) }
        do {
            let registry = try await place.open()
            var problems = registry.notices.map { "opened with a notice: \($0)" }
            let found = try await Model.Contents(registry, entriesOf: model.lastChanged)
            tally.downloads += found.downloads.count
            if !model.allows(found) { problems.append("not as promised: \(model.difference(found))") }
            let directories = Set(registry.directory?.knownDirectories ?? [])
            for path in found.directories where !directories.contains(path) { problems.append("\(path) is forgotten") }
            await registry.close()
            return problems
        } catch {
            return ["does not open: \(error)"]
        }
    }
}

/// The expected contents of the registry, from the output of the victim.
private struct Model {
    struct Contents: Equatable {
        /// The held bytes and the state of each download, by number.
        var downloads: [Int: [Int64]] = [:]
        var round: String?
        var directories: Set<String> = []
        /// The times of the notes in the timelines that were read, by download number.
        var entries: [Int: [Int64]] = [:]

        static func == (left: Contents, right: Contents) -> Bool {
            left.downloads == right.downloads && left.round == right.round
        }

        init() {}

        init(_ registry: SQLiteRegistry, entriesOf number: Int?) async throws {
            var query = DownloadQuery()
            query.limit = 10_000
            for download in try await registry.page(query).downloads {
                let number = Int(download.name?.dropLast(4) ?? "") ?? -1
                if downloads[number] != nil { downloads[-2] = [] }
                downloads[number] = [download.heldBytes, Int64(download.state.number)]
                directories.insert(download.directory)
            }
            let totals = try await registry.totals()
            if totals.counts.values.reduce(0, +) != downloads.count { downloads[-3] = [] }
            round = try await registry.values(prefix: "round")["round"]
            guard let number else { return }
            let id = DownloadID(milliseconds: UInt64(number), random: (0, UInt64(number)))
            entries[number] = try await registry.timeline(of: id, after: 0, limit: 10_000).map(\.time)
        }
    }

    private var before = Contents()
    /// The contents after the current call, which may or may not be complete; `nil` between calls.
    private var after: Contents?
    private(set) var lastChanged: Int?

    mutating func hear(_ line: String) {
        let words = line.split(separator: " ")
        switch words.first {
        case "begin": after = changed(words.dropFirst(1).map(String.init))
        case "end":
            before = after ?? before
            after = nil
        default: break
        }
    }

    private mutating func changed(_ words: [String]) -> Contents {
        var contents = before
        let numbers = words.dropFirst().compactMap { Int($0) }
        switch words[0] {
        case "add": for number in numbers { contents.downloads[number] = [0, 0] }
        case "change":
            contents.downloads[numbers[0]]?[0] = Int64(numbers[1])
            contents.entries[numbers[0], default: []].append(Int64(numbers[1]))
            lastChanged = numbers[0]
        case "remove":
            contents.downloads[numbers[0]] = nil
            contents.entries[numbers[0]] = nil
        case "all": for number in contents.downloads.keys { contents.downloads[number]?[1] = Int64(numbers[0]) }
        default: contents.round = "\(numbers[0])"
        }
        return contents
    }

    /// Returns whether the contents are from before or after the current call, including timelines.
    func allows(_ found: Contents) -> Bool {
        [before, after].contains { candidate in
            guard let candidate, candidate == found else { return false }
            return found.entries.allSatisfy { candidate.entries[$0.key, default: []] == $0.value }
        }
    }

    func difference(_ found: Contents) -> String {
        let lost = before.downloads.filter { found.downloads[$0.key] != $0.value }
        let extra = found.downloads.filter { before.downloads[$0.key] == nil }
        return "lost \(lost.sorted { $0.key < $1.key }.prefix(3)), extra \(extra.keys.sorted().prefix(3)), "
            + "round \(before.round ?? "-") found \(found.round ?? "-")"
    }
}
