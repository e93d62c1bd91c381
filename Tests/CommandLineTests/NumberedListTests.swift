import FaultServer
import Foundation
import Testing

/// Lists in which several files have the same name, or that arrive in unusual ways.
@Suite(.timeLimit(.minutes(1)))
struct NumberedListTests {
    private static func length(_ number: Int) -> Int64 { Int64(10_000 + number) }

    /// Serves `/1/data.csv` and so on, the first line last.
    private func server(_ fields: [(String, String)] = [], name: String = "data.csv") async throws -> FaultServer {
        var resources: [String: Resource] = [:]
        for number in 1...4 {
            let slow = Behaviour.first(1, .slowHead(bytesPerSecond: Int64(600 * number)))
            resources["/\(number)/\(name)"] = Resource(
                Version(seed: UInt64(number), length: Self.length(number)), fields: fields,
                behaviour: number < 3 ? slow : .correct)
        }
        return try await FaultServer.start(resources)
    }

    private func lengths(in place: TestDirectory) throws -> [String: Int64] {
        var lengths: [String: Int64] = [:]
        for name in place.names {
            let attributes = try FileManager.default.attributesOfItem(atPath: place.path(name))
            lengths[name] = (attributes[.size] as? NSNumber)?.int64Value
        }
        return lengths
    }

    private static let expected = [
        "data.csv": length(1), "data (1).csv": length(2), "data (2).csv": length(3), "data (3).csv": length(4),
    ]

    /// The name comes from the URL, or from the server; running the list again changes nothing.
    @Test(arguments: [true, false]) func filesAreNumberedInTheOrderOfTheList(_ isNamedByURL: Bool) async throws {
        let fields = isNamedByURL ? [] : [("Content-Disposition", "attachment; filename=data.csv")]
        let name = isNamedByURL ? "data.csv" : "get"
        let server = try await server(fields, name: name)
        let place = try TestDirectory()
        let list = (1...4).map { server.url("/\($0)/\(name)") }.joined(separator: "\n")
        for _ in 1...2 {
            let result = try await CommandRun.run(["get", "-i", "-"], input: list, directory: place.url)
            #expect(result.status == 0, "\(result.stderr)")
            #expect(try lengths(in: place) == Self.expected)
        }
        await server.stop()
    }

    /// A line that fails keeps its number free.
    @Test func aLineThatFailsKeepsItsNumber() async throws {
        let server = try await server()
        let place = try TestDirectory()
        let urls = [1, 9, 3, 4].map { server.url("/\($0)/data.csv") }
        let result = try await CommandRun.run(
            ["get", "-i", "-"], input: urls.joined(separator: "\n"), directory: place.url)
        #expect(result.status == 8, "\(result.stderr)")
        var expected = Self.expected
        expected["data (1).csv"] = nil
        #expect(try lengths(in: place) == expected)
        await server.stop()
    }

    /// A line before the others in a changed list gets a new number. The others keep their files.
    @Test func finishedFilesKeepTheirNumbersWhenTheListChanges() async throws {
        let server = try await server()
        let place = try TestDirectory()
        for numbers in [[2, 3], [1, 2, 3]] {
            let list = numbers.map { server.url("/\($0)/data.csv") }.joined(separator: "\n")
            let result = try await CommandRun.run(["get", "-i", "-"], input: list, directory: place.url)
            #expect(result.status == 0, "\(result.stderr)")
        }
        let lengths = try lengths(in: place)
        #expect(
            lengths == [
                "data.csv": Self.length(2), "data (1).csv": Self.length(3), "data (2).csv": Self.length(1),
            ])
        await server.stop()
    }

    @Test func manyFilesOfOneNameAllArrive() async throws {
        let server = try await FaultServer.start(["/get": Resource(length: 500, seed: 1)])
        let place = try TestDirectory()
        let list = (0..<100).map { server.url("/get") + "?id=\($0)\n" }.joined()
        let result = try await CommandRun.run(["get", "-q", "-j", "50", "-i", "-"], input: list, directory: place.url)
        #expect(result.status == 0, "\(result.stderr)")
        #expect(place.names.count == 100)
        await server.stop()
    }

    @Test func aNonBlockingPipeIsWaitedFor() async throws {
        let server = try await server()
        let place = try TestDirectory()
        let pipe = try TestDirectory()
        try #require(mkfifo(pipe.path("pipe"), 0o600) == 0)
        // Programs of other tests must not keep the pipe open.
        let ends = [O_RDONLY | O_NONBLOCK, O_WRONLY].map { open(pipe.path("pipe"), $0 | O_CLOEXEC) }
        try #require(ends.allSatisfy { $0 >= 0 })
        let (reader, writer) = (FileHandle(fileDescriptor: ends[0]), FileHandle(fileDescriptor: ends[1]))
        let run = try CommandRun(["get", "-i", "-"], input: reader, directory: place.url)
        // Options of a URL may follow on the next line, so a URL is downloaded once the next line has been read.
        let first = [3, 4].map { server.url("/\($0)/data.csv") + "\n" }.joined()
        try writer.write(contentsOf: Data(first.utf8))
        try await eventually { run.stderrSoFar.contains("downloaded") }
        try writer.write(contentsOf: Data((server.url("/1/data.csv") + "\n").utf8))
        try writer.close()
        let result = try await run.finish()
        #expect(result.status == 0, "\(result.stderr)")
        #expect(place.names == ["data (1).csv", "data (2).csv", "data.csv"])
        await server.stop()
    }

    @Test func aClosedStandardInputIsAUsageError() async throws {
        let input = try FileHandle(forWritingTo: URL(fileURLWithPath: "/dev/null"))
        let result = try await CommandRun(["get", "-i", "-"], input: input).finish()
        #expect(result.status == 2)
        #expect(result.stderr.contains("standard input is closed"), "\(result.stderr)")
    }
}
