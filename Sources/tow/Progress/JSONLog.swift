import TowlineCore
import TowlineEngine

/// Progress for programs: one JSON object per line. `docs/command-line.md` describes the objects.
struct JSONLog: Sendable {
    private struct Running {
        let began: Duration
        var snapshot = TransferSnapshot()
        var said: Duration?
    }

    private let places: ListPlaces
    private var running: [Int: Running] = [:]
    private var text = ""
    private var finished = 0
    private var failed = 0

    /// - Parameter places: the lines of the lists that the downloads were read from.
    init(_ places: ListPlaces = ListPlaces()) { self.places = places }

    mutating func started(_ number: Int, _ options: DownloadOptions, now: Duration) {
        running[number] = Running(began: now)
        var object = Self.event("started", number)
        object.add("url", options.url.withoutSecrets)
        if case .file(let directory, let name) = options.target {
            object.add("directory", directory)
            object.add("name", name)
        }
        addPlace(of: number, to: &object)
        append(object)
    }

    /// Adds a progress object: at most four per second and download, and one at each change of state.
    mutating func progressed(_ number: Int, _ snapshot: TransferSnapshot, now: Duration) {
        guard var entry = running[number] else { return }
        let isNews = entry.snapshot.state != snapshot.state
        entry.snapshot = snapshot
        defer { running[number] = entry }
        if let said = entry.said, !isNews, now - said < .milliseconds(250) { return }
        // A reader that is too slow misses progress and nothing else.
        guard text.utf8.count < 1 << 20 else { return }
        entry.said = now
        var object = Self.event("progress", number)
        object.add("state", Self.name(of: snapshot.state))
        object.add("name", snapshot.name)
        object.add("completeLength", snapshot.completeLength)
        object.add("heldBytes", snapshot.heldBytes)
        object.add("resumedBytes", snapshot.resumedBytes)
        object.add("receivedBytes", snapshot.receivedBytes)
        object.add("bytesPerSecond", snapshot.rate.flatMap { Int64(exactly: $0.rounded()) })
        object.add("remainingSeconds", seconds: snapshot.remaining.map { $0 / .seconds(1) })
        object.add("connections", snapshot.connections)
        if let wait = snapshot.wait {
            var inner = JSONObject()
            inner.add("seconds", seconds: wait.remaining / .seconds(1))
            inner.add("reason", wait.reason)
            object.add("wait", inner)
        }
        append(object)
    }

    mutating func noticed(_ number: Int, _ notice: TransferNotice) {
        var object = Self.event("notice", number)
        object.add("level", notice.level.rawValue)
        object.add("kind", notice.kind.rawValue)
        object.add("message", notice.message)
        append(object)
    }

    mutating func traced(_ number: Int, _ line: String, now: Duration) {
        var object = Self.event("trace", number)
        object.add("seconds", seconds: running[number].map { (now - $0.began) / .seconds(1) })
        object.add("message", line)
        append(object)
    }

    mutating func ended(_ number: Int, _ result: Result<CompletedTransfer, TowlineError>, now: Duration) {
        let entry = running.removeValue(forKey: number)
        switch result {
        case .success(let completed):
            finished += 1
            var object = Self.event("finished", number)
            Self.describe(completed.outcome, in: &object)
            object.add("receivedBytes", completed.receivedBytes)
            object.add("resumedBytes", entry?.snapshot.resumedBytes)
            object.add("seconds", seconds: entry.map { (now - $0.began) / .seconds(1) })
            append(object)
        case .failure(let error):
            failed += 1
            var object = Self.event("failed", number)
            object.add("code", error.code.description)
            object.add("message", error.message)
            object.add("exitStatus", ExitStatus(error).rawValue)
            object.add("httpStatus", error.status)
            object.add("systemError", error.systemError)
            object.add("networkFailure", error.networkFailure?.description)
            object.add("heldBytes", entry?.snapshot.heldBytes)
            addPlace(of: number, to: &object)
            append(object)
        }
    }

    private func addPlace(of number: Int, to object: inout JSONObject) {
        guard let line = places.line(of: number) else { return }
        object.add("list", line.list)
        object.add("line", line.line)
    }

    /// Adds the last line of the output.
    mutating func closed(exitStatus: Int32) {
        var object = JSONObject()
        object.add("event", "ended")
        object.add("finished", finished)
        object.add("failed", failed)
        object.add("exitStatus", exitStatus)
        append(object)
    }

    /// Returns whether there is text that `take` has not returned yet.
    var hasNews: Bool { !text.isEmpty }

    mutating func take() -> String {
        defer { text = "" }
        return text
    }

    private mutating func append(_ object: JSONObject) {
        text += object.closed
        text += "\n"
    }

    private static func event(_ name: String, _ number: Int) -> JSONObject {
        var object = JSONObject()
        object.add("event", name)
        object.add("download", number)
        return object
    }

    private static func describe(_ outcome: CompletedTransfer.Outcome, in object: inout JSONObject) {
        switch outcome {
        case .published(let file):
            object.add("outcome", "published")
            object.add("path", file.path)
            object.add("length", file.length)
        case .alreadyThere(let file):
            object.add("outcome", "alreadyThere")
            object.add("path", file.path)
            object.add("length", file.length)
        case .upToDate(let file):
            object.add("outcome", "upToDate")
            object.add("path", file.path)
            object.add("length", file.length)
        case .skipped(let path):
            object.add("outcome", "skipped")
            object.add("path", path)
        case .streamed(let length, _):
            object.add("outcome", "streamed")
            object.add("length", length)
        }
    }

    /// Returns the name of a state without the reason of a wait.
    private static func name(of state: DownloadState) -> String {
        if case .waiting = state { "waiting" } else { state.description }
    }
}
