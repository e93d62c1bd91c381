import FaultServer
import Testing
import Glibc
import TowlineCore
import TowlineDisk
import TowlineEngine

/// A download with its server and its directory. Victim programs, which fail at a chosen call, run it, and then `tow`.
struct VictimRun: Sendable {
    let server: FaultServer
    let place: Workplace
    let connections: Int
    /// The name of the file.
    let name = "file"

    /// Creates a download of a version. If `isLate` is `true`, the server pauses for 100 ms in the middle of a
    /// complete response, after which the engine no longer holds the response back until it is complete.
    init(_ version: Version, connections: Int, isLate: Bool = false) async throws {
        let late = Behaviour { context in
            let (content, length) = (context.version.content, context.version.length)
            return context.correct.body([
                .content(content, 0..<length / 2), .pause(.milliseconds(100)), .content(content, length / 2..<length),
            ])
        }
        server = try await FaultServer.start(["/file": isLate ? Resource(version, behaviour: late) : Resource(version)])
        place = try Workplace()
        self.connections = connections
    }

    /// The version that the server currently serves.
    var version: Version { server.version("/file") ?? Version(length: 0) }

    /// Runs the victim program. `strike` is the failure, such as `kill`, and `number` the call where it happens.
    func victim(_ strike: String, _ number: Int, connections: Int? = nil) async throws -> ChildProcess.Ending {
        let arguments = [
            server.url("/file"), place.path, name, "\(connections ?? self.connections)", strike, "\(number)",
        ]
        return try await ChildProcess.run("crash-victim", arguments, within: 30)
    }

    /// Runs the victim program without a failure, and expects that the kernel moved bytes with `splice`. It moves only
    /// a fast response, so on a busy machine one of five runs must have one.
    func spliced() async throws -> ChildProcess.Ending {
        var ending = try await victim("none", 0)
        for _ in 0..<4 where Self.splices(ending) <= 30 {
            place.clear()
            ending = try await victim("none", 0)
        }
        #expect(Self.splices(ending) > 30)
        return ending
    }

    /// The length in bytes of a file that is long enough for `splice` to move most of its bytes.
    static let long: Int64 = 20_000_000

    /// Returns the number of a victim's calls that moved bytes from a pipe.
    static func splices(_ ending: ChildProcess.Ending) -> Int {
        let words = ending.output.split(whereSeparator: \.isWhitespace)
        return words.lastIndex(of: "splices").flatMap { Int(words[$0 + 1]) } ?? 0
    }

    /// Returns the number of calls that a victim counted.
    static func calls(_ ending: ChildProcess.Ending) -> Int {
        let word = ending.output.split(whereSeparator: \.isWhitespace).last ?? ""
        return Int(word) ?? 0
    }

    /// Runs `tow` and returns a problem with its result, or `nil`. If `orOccupied` is `true`, `tow` may also report
    /// that the name is taken.
    func finish(orOccupied: Bool = false) async throws -> String? {
        let ending = try await ChildProcess.run(
            "tow", ["get", "-q", "-x", "\(connections)", "-o", place.file(name), server.url("/file")])
        guard ending.isSuccess || orOccupied && ending.status == 7, !ending.isLate else {
            return "tow ended with \(ending)"
        }
        return place.problem(name, version)
    }

    /// Returns whether a kill must not lose the part file. A part file without a journal makes no claims. A journal
    /// that was retired, because a new part file replaces the old one, makes no claims either.
    var hasClaims: Bool {
        if case .unfinished = try? JournalReader.look(at: place.file(name)) { return true }
        return place.has(name)
    }

    /// Returns whether a run left all bytes, so that the next run sends no request.
    func holdsAll(_ version: Version) throws -> Bool {
        switch try JournalReader.look(at: place.file(name)) {
        case .unfinished(let report, _): report.written.contains(ByteRange(0, version.length))
        case .finished: true
        case .unclaimed, .ordinary: false
        }
    }

    /// Returns a problem with the files that a killed victim left, or `nil`. A complete file must have the bytes of
    /// exactly one of the versions.
    func problemAfterKill(versions: [Version], mayBeEmpty: Bool) -> String? {
        let hasPart = place.has(name + ".tow")
        let hasAnyPart = hasPart || place.has(name + ".tow-old")
        let hasFile = place.has(name)
        if hasPart && hasFile { return "part file and file are both there" }
        if !hasAnyPart && !hasFile && !mayBeEmpty { return "neither part file nor file is there: \(place.names)" }
        guard hasFile else { return nil }
        let problems = versions.map { wrongPlace($0, 0..<$0.length) }
        return problems.contains(nil) ? nil : "a wrong file"
    }

    /// Returns a problem with the bytes that the journal claims, or `nil`. Opens the files as the next run does, which
    /// also cleans them up.
    func problemWithClaims(versions: [Version]) throws -> String? {
        guard case .unfinished(let part) = try FileStorage().survey(Place(directory: place.path, name: name)) else {
            return nil
        }
        defer { part.sink.close() }
        let problems = versions.map { version in
            part.claims.ranges.contains { range in
                range.upperBound > version.length || wrongPlace(version, range.lowerBound..<range.upperBound) != nil
            }
        }
        return problems.contains(false) ? nil : "claims that are not true: \(part.claims)"
    }

    private func wrongPlace(_ version: Version, _ range: Range<Int64>) -> Int64? {
        let path = place.has(name) ? place.file(name) : place.file(name + ".tow")
        do {
            return try version.content.firstMismatch(inFile: path, range: range)
        } catch {
            return -1
        }
    }
}
