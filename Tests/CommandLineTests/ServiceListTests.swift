import FaultServer
import Foundation
import Testing

@testable import tow

/// Tests of the list of `towd` as `tow` prints and filters it, with built programs.
struct ServiceListTests {
    private struct Row: Decodable {
        let id: String
        let name: String?
        let state: String
        let reason: String?
    }

    private static func rows(_ service: ServiceProcess, _ options: [String] = []) async throws -> [Row] {
        let result = try await service.tow(["list", "--json"] + options)
        #expect(result.status == 0, "\(options): \(result.stderr)")
        return try result.text.split(separator: "\n").map { line in
            try JSONDecoder().decode(Row.self, from: Data(line.utf8))
        }
    }

    /// Waits until the list fulfils a condition, and returns its last rows.
    private static func wait(
        _ service: ServiceProcess, until isSo: ([Row]) -> Bool
    ) async throws -> [Row] {
        let end = ContinuousClock.now + .seconds(60)
        var rows = try await rows(service)
        while !isSo(rows), ContinuousClock.now < end {
            try await Task.sleep(for: .milliseconds(50))
            rows = try await Self.rows(service)
        }
        return rows
    }

    /// `--only` accepts each word that the list prints, and selects the rows with this word.
    @Test(.timeLimit(.minutes(2))) func theFilterTakesTheWordsOfTheList() async throws {
        let server = try await FaultServer.start([
            "/a.bin": Resource(length: 64 << 20, seed: 7, rate: 1 << 16), "/b.bin": Resource(length: 1 << 20),
            "/c.bin": Resource(length: 1 << 20),
        ])
        let service = try ServiceProcess(try TestDirectory())
        _ = try await service.tow(["limit", "--per-host", "1"])
        _ = try await service.tow(["add", "-o", "a.bin", server.url("/a.bin")])
        _ = try await Self.wait(service) { $0.first?.state == "downloading" }
        _ = try await service.tow(["add", "-o", "b.bin", server.url("/b.bin")])
        _ = try await service.tow(["add", "-o", "c.bin", "--paused", server.url("/c.bin")])
        let shown = try await Self.wait(service) { $0.contains { $0.state == "downloading" } && $0.count == 3 }
        #expect(shown.map(\.state).sorted() == ["downloading", "paused", "queued"])
        for row in shown {
            #expect(try await Self.rows(service, ["--only", row.state]).map(\.name) == [row.name], "\(row.state)")
        }
        let words = ["queued", "connecting", "downloading", "verifying", "publishing", "waiting", "paused"]
        for word in words + ["finished", "failed", "cancelled", "follow-up-failed"] {
            let rows = try await Self.rows(service, ["--only", word])
            #expect(rows.allSatisfy { $0.state == word }, "\(word)")
        }
        #expect(try await Self.rows(service, ["--only", "active"]).map(\.name) == ["a.bin"])
        #expect(try await Self.rows(service, ["--only", "downloading,paused", "-n", "1"]).count == 1)
        #expect(try await Self.rows(service, ["--only", "Downloading, Paused"]).count == 2)
        let none = try await service.tow(["list", "-n", "0"])
        #expect(none.status == 2 && none.stderr.contains("--number"), "\(none.stderr)")
        for only in ["running", "", ",", "paused,"] {
            let unknown = try await service.tow(["list", "--only", only])
            #expect(unknown.status == 2 && unknown.text == "", "\(only)")
            #expect(unknown.stderr.contains("--only: ") && unknown.stderr.contains("downloading"), "\(unknown.stderr)")
        }
        for (option, value) in [("--order", "colour"), ("--order", ""), ("--group", ""), ("--text", "")] {
            let refused = try await service.tow(["list", option, value])
            #expect(refused.status == 2 && refused.stderr.contains(option + ": "), "\(refused.stderr)")
        }
        service.kill()
        await server.stop()
    }

    /// A complete file that cannot be unpacked is not shown as finished.
    @Test(.timeLimit(.minutes(2))) func aFailedFollowUpIsShown() async throws {
        let server = try await FaultServer.start(["/a.zip": Resource(length: 1 << 20)])
        let service = try ServiceProcess(try TestDirectory())
        _ = try await service.tow(["add", "--unpack", server.url("/a.zip")])
        let rows = try await Self.wait(service) { $0.first?.state == "follow-up-failed" }
        #expect(rows.map(\.state) == ["follow-up-failed"])
        for only in [[], ["--only", "failed"], ["--only", "follow-up-failed"]] {
            let line = try await service.tow(["list"] + only).text
            #expect(line.contains("  follow-up-failed  ") && line.contains("(the downloaded archive was not unpacked"))
        }
        #expect(try await Self.rows(service, ["--only", "finished"]).isEmpty)
        let again = try await service.tow(
            ["add", "--checksum", "md5:" + String(repeating: "0", count: 32)] + [
                server.url("/a.zip")
            ])
        #expect(again.status == 5 && again.stderr.contains("a.zip is finished and does not match"), "\(again.stderr)")
        let smaller = try await service.tow(["add", "--max-size", "5", server.url("/a.zip")])
        #expect(smaller.status == 1 && smaller.stderr.contains(": --max-size. "), "\(smaller.stderr)")
        service.kill()
        await server.stop()
    }

    /// A transfer that waits for its next attempt is shown as waiting, and so is found and counted as waiting.
    @Test(.timeLimit(.minutes(2))) func aWaitBetweenAttemptsCountsAsWaiting() async throws {
        let service = try ServiceProcess(try TestDirectory())
        _ = try await service.tow([
            "add", "-o", "a.bin", "--max-tries", "20", "--retry-wait", "60", "http://127.0.0.1:1/a.bin",
        ])
        _ = try await Self.wait(service) { $0.first?.state == "waiting" }
        #expect(try await Self.rows(service, ["--only", "waiting"]).map(\.name) == ["a.bin"])
        for word in ["active", "connecting", "queued"] {
            #expect(try await Self.rows(service, ["--only", word]).isEmpty, "\(word)")
        }
        service.kill()
    }

    @Test(.timeLimit(.minutes(2))) func aQueuedDownloadNamesTheLimit() async throws {
        let server = try await FaultServer.start(["/a.bin": Resource(length: 64 << 20, seed: 7, rate: 1 << 20)])
        let service = try ServiceProcess(try TestDirectory())
        _ = try await service.tow(["limit", "--per-host", "1", "--running", "2"])
        _ = try await service.tow(["add", "-o", "a.bin", server.url("/a.bin")])
        _ = try await Self.wait(service) { $0.first?.state == "downloading" }
        _ = try await service.tow(["add", "-o", "b.bin", server.url("/b.bin")])
        let rows = try await Self.rows(service, ["--only", "queued"])
        #expect(rows.map(\.reason) == ["limit: 1 per host"])
        #expect(try await service.tow(["list"]).text.contains("b.bin  (limit: 1 per host)\n"))
        #expect(try await service.tow(["show", rows[0].id]).text.contains("\nreason       limit: 1 per host\n"))
        _ = try await service.tow(["limit", "--per-host", "9", "--running", "1"])
        #expect(try await Self.rows(service, ["--only", "queued"]).map(\.reason) == ["limit: 1 at the same time"])
        service.kill()
        await server.stop()
    }

    /// The name of a file is accepted as an ID. A name of several downloads lists their IDs.
    @Test(.timeLimit(.minutes(2))) func aNameIsAnIDWhereItIsUnique() async throws {
        let service = try ServiceProcess(try TestDirectory())
        _ = try await service.tow(["list"])
        let names = ["Müller 100%.iso", "b.bin", "C.bin"]
        for name in names {
            let added = try await service.tow(["add", "--paused", "-o", name, "http://127.0.0.1:9/\(UUID())"])
            #expect(added.status == 0, "\(added.stderr)")
        }
        _ = try await service.tow(["add", "--paused", "http://127.0.0.1:9/x/un%20named.bin"])
        _ = try await service.tow(["add", "--paused", "-d", "sub", "-o", "b.bin", "http://127.0.0.1:9/other"])
        for name in [names[0], "un named.bin"] {
            let shown = try await service.tow(["show", name])
            #expect(shown.status == 0, "\(name): \(shown.stderr)")
        }
        // An unset variable of a script, and names of directories.
        for word in ["", ".", ".."] {
            let result = try await service.tow(["remove", word])
            #expect(result.status == 2 && result.stderr.contains("'tow list' shows the IDs"), "\(result.stderr)")
        }
        let ambiguous = try await service.tow(["cancel", "b.bin"])
        #expect(ambiguous.status != 0)
        let candidates = try await Self.rows(service).filter { $0.name == "b.bin" }
        #expect(candidates.count == 2 && candidates.allSatisfy { $0.state == "paused" })
        for row in candidates { #expect(ambiguous.stderr.contains(row.id.suffix(6)), "\(ambiguous.stderr)") }
        #expect(ambiguous.stderr.contains("/sub"))
        let other = try await service.tow(["cancel", "c.bin"])
        #expect(other.status != 0 && other.stderr.contains("c.bin"), "upper and lower case differ: \(other.stderr)")
        #expect(try await service.tow(["cancel", "C.bin"]).status == 0)
        #expect(try await Self.rows(service, ["--only", "cancelled"]).map(\.name) == ["C.bin"])
        service.kill()
    }

    /// A row shows one short reason: no sentence of libcurl, and the host once. `tow show` has the details.
    @Test(.timeLimit(.minutes(2))) func aRowHasOneShortReason() async throws {
        let service = try ServiceProcess(try TestDirectory())
        _ = try await service.tow(["list"])
        let url = "http://127.0.0.1:9/a.bin"
        _ = try await service.tow(["add", "-o", "waits.bin", url + "?2"])
        _ = try await service.tow(["add", "-o", "fails.bin", "--max-tries", "1", url])
        let short = "cannot connect to the server, which may be down: connection refused or host unreachable"
        let rows = try await Self.wait(service) { rows in
            Set(rows.map(\.state)) == ["waiting", "failed"]
                && rows.allSatisfy { $0.reason != nil || $0.state == "failed" }
        }
        let waiting = try #require(rows.first { $0.state == "waiting" })
        #expect(waiting.reason?.hasPrefix(short) == true)
        #expect(waiting.reason?.contains("127.0.0.1") == false && waiting.reason?.contains("(") == false)
        for line in try await service.tow(["list"]).text.split(separator: "\n") {
            #expect(line.contains("(\(short)") && !line.contains("127.0.0.1"), "\(line)")
        }
        let shown = try await service.tow(["show", "fails.bin"]).text
        #expect(shown.contains("\nerror        \(url): \(short) (") && shown.contains("1 attempt failed"), "\(shown)")
        service.kill()
    }

    /// The reason of a retry begins with the URL too.
    @Test func aReasonDoesNotRepeatTheURL() {
        var download = WatchBench.download("a", .waiting)
        download.reason = "http://a.test/fa: no response from the server (Timeout was reached). 4 attempts failed"
        #expect(DownloadLines.shortReason(download) == "no response from the server")
        download.reason = "limit: 1 per host"
        #expect(DownloadLines.shortReason(download) == "limit: 1 per host")
    }
}
