import FaultServer
import Glibc
import TowlineCore
import TowlineDisk
import TowlineEngine

/// One download with its server and its directory, run by victims that are struck and at last by `tow` itself.
struct VictimRun: Sendable {
    let server: FaultServer
    let place: Workplace
    let connections: Int
    /// The name of the file.
    let name = "file"

    /// A download of that version, served as fast as it goes, or late to whoever asks for all of it: half, and the rest when
    /// nobody holds an answer any more until it is whole.
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

    /// What is served.
    var version: Version { server.version("/file") ?? Version(length: 0) }

    /// Runs a victim; `strike` is one of its own words.
    func victim(_ strike: String, _ number: Int, connections: Int? = nil) async throws -> ChildProcess.Ending {
        let arguments = [
            server.url("/file"), place.path, name, "\(connections ?? self.connections)", strike, "\(number)",
        ]
        return try await ChildProcess.run("crash-victim", arguments, within: 30)
    }

    /// The length of a file most of which the kernel moves.
    static let long: Int64 = 20_000_000

    /// How many of a victim's calls moved bytes from a pipe.
    static func splices(_ ending: ChildProcess.Ending) -> Int {
        let words = ending.output.split(whereSeparator: \.isWhitespace)
        return words.lastIndex(of: "splices").flatMap { Int(words[$0 + 1]) } ?? 0
    }

    /// How many calls a victim counted.
    static func calls(_ ending: ChildProcess.Ending) -> Int {
        let word = ending.output.split(whereSeparator: \.isWhitespace).last ?? ""
        return Int(word) ?? 0
    }

    /// Runs `tow` to the end; what is wrong then, or `nil`. `orOccupied`: it may also say that the name is taken.
    func finish(orOccupied: Bool = false) async throws -> String? {
        let ending = try await ChildProcess.run(
            "tow", ["get", "-q", "-x", "\(connections)", "-o", place.file(name), server.url("/file")])
        guard ending.isSuccess || orOccupied && ending.status == 7, !ending.isLate else {
            return "tow ended with \(ending)"
        }
        return place.problem(name, version)
    }

    /// True if a kill must not lose the part file. A part file without a journal claims nothing. A journal that was
    /// retired, because a new part file replaces its own, claims nothing either.
    var hasClaims: Bool {
        if case .unfinished = try? JournalReader.look(at: place.file(name)) { return true }
        return place.has(name)
    }

    /// Whether a run left all of it, so that nobody asks the server what it has now.
    func holdsAll(_ version: Version) throws -> Bool {
        switch try JournalReader.look(at: place.file(name)) {
        case .unfinished(let report, _): report.written.contains(ByteRange(0, version.length))
        case .finished: true
        case .unclaimed, .ordinary: false
        }
    }

    /// What is wrong with what a killed victim left; `nil` if nothing is. Whole files and claimed bytes may be those
    /// of any of the versions, of one version each.
    func problemAfterKill(versions: [Version], mayBeEmpty: Bool) -> String? {
        let hasPart = place.has(name + ".tow")
        let hasFile = place.has(name)
        if hasPart && hasFile { return "part file and file are both there" }
        if !hasPart && !hasFile && !mayBeEmpty { return "neither part file nor file is there: \(place.names)" }
        guard hasFile else { return nil }
        let problems = versions.map { wrongPlace($0, 0..<$0.length) }
        return problems.contains(nil) ? nil : "a wrong file"
    }

    /// The same for what the next run would believe. Asking is what the next run begins with: it tidies up.
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
