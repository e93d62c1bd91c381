import Foundation
import Synchronization
public import Towline
public import TowlineCore

/// A list of downloads in memory whose states a test sets, for tests of view models and for previews of views.
///
/// No disk and no network is used, and only the test changes a download: one that was added stays `queued` until the
/// test calls ``receive(_:of:)``, ``finish(_:)``, ``fail(_:with:)`` or ``change(_:_:)``. The commands of the app have
/// the same effects and the same errors as with `Downloader`.
///
/// ```swift
/// let downloader = ScriptedDownloader()
/// let model = DownloadModel(try await downloader.add(request))
/// try downloader.receive(400_000, of: model.id)
/// try downloader.fail(model.id, with: TowlineError(.notFound, "film.mp4: not found"))
/// ```
///
/// All calls are safe from any thread.
public final class ScriptedDownloader: DownloadManager {
    /// A command that the app issued.
    public enum Command: Hashable, Sendable {
        /// A call of `add` or `add(contentsOf:)`.
        case add([DownloadRequest])
        /// An action for one download, such as a pause.
        case perform(DownloadAction, DownloadID)
        /// A call of `pauseAll`, for a group or for all downloads.
        case pauseAll(group: String?)
        /// A call of `startAll`, for a group or for all downloads.
        case startAll(group: String?)
    }

    fileprivate struct Contents {
        var list = ScriptedList()
        var commands: [Command] = []
        var failure: TowlineError?
        var isClosed = false
    }

    private let contents: Mutex<Contents>
    private let hub = SnapshotHub()
    private let identifiers = IDSource()

    /// Creates a list with downloads in the given states, such as for a preview. Their handles are
    /// `Download(id: snapshot.id, manager: downloader)`.
    public init(_ snapshots: [DownloadSnapshot] = []) {
        var first = Contents()
        for snapshot in snapshots { first.list.append(ScriptedList.Entry(snapshot)) }
        contents = Mutex(first)
    }

    /// The commands of the app so far, in order, also those that threw an error.
    public var commands: [Command] { contents.withLock { $0.commands } }

    /// The error that all calls of the app throw, for example `transient` as if `towd` did not run; `nil` for none.
    public var failure: TowlineError? {
        get { contents.withLock { $0.failure } }
        set { contents.withLock { $0.failure = newValue } }
    }

    // MARK: Script

    /// Changes the snapshot of a download as `body` does, and informs the app. Any state can be set. A new state gets
    /// the ``DownloadSnapshot/reason`` and the ``DownloadSnapshot/error`` of a real download, unless `body` sets them.
    ///
    /// - Throws: `unknownDownload` if the list does not contain the identifier.
    public func change(_ id: DownloadID, _ body: (inout DownloadSnapshot) -> Void) throws(TowlineError) {
        try update(id) { entry in
            let old = entry.snapshot
            body(&entry.snapshot)
            entry.snapshot.completeReason(after: old)
        }
    }

    /// Adds bytes to a download that is queued, running or waiting, whose state becomes `downloading`.
    ///
    /// - Throws: `illegalTransition` in another state; `unknownDownload` if the list does not contain the identifier.
    public func receive(_ count: Int64, of id: DownloadID) throws(TowlineError) {
        try run(id, "receive bytes") { snapshot in
            snapshot.state = .downloading
            snapshot.heldBytes += count
            snapshot.receivedBytes += count
            snapshot.connections = max(1, snapshot.connections)
        }
    }

    /// Finishes a download that is queued, running or waiting. Without a name, the file gets that of the URL.
    ///
    /// - Throws: `illegalTransition` in another state; `unknownDownload` if the list does not contain the identifier.
    public func finish(_ id: DownloadID) throws(TowlineError) {
        try run(id, "finish") { snapshot in
            snapshot.state = .finished
            let name = (try? HTTPURL(parsing: snapshot.source))?.lastPathComponent.flatMap { SafeFileName.make($0) }
            snapshot.name = snapshot.name ?? name ?? "download"
            snapshot.heldBytes = snapshot.completeLength ?? snapshot.heldBytes
            snapshot.completeLength = snapshot.heldBytes
            snapshot.endedAt = Date()
        }
    }

    /// Fails a download that is queued, running or waiting with an error.
    ///
    /// - Throws: `illegalTransition` in another state; `unknownDownload` if the list does not contain the identifier.
    public func fail(_ id: DownloadID, with error: TowlineError) throws(TowlineError) {
        try run(id, "fail") { snapshot in
            snapshot.state = .failed
            snapshot.error = error
            snapshot.reason = error.message
            snapshot.endedAt = Date()
        }
    }

    /// Adds a note to the timeline of a download. `kind` is a name for programs, `message` a text for people.
    ///
    /// - Throws: `unknownDownload` if the list does not contain the identifier.
    public func note(_ kind: String, _ message: String, of id: DownloadID) throws(TowlineError) {
        let time = Int64((Date().timeIntervalSince1970 * 1000).rounded())
        try contents.withLock { contents throws(TowlineError) in
            try contents.list.update(id) { entry throws(TowlineError) in
                entry.notes.append(
                    TimelineNote(number: Int64(entry.notes.count) + 1, time: time, kind: kind, message: message))
            }
            hub.publish(TimelineNote(time: time, kind: kind, message: message), of: id)
        }
    }

    private func run(
        _ id: DownloadID, _ what: String, _ body: (inout DownloadSnapshot) -> Void
    ) throws(TowlineError) {
        try update(id) { entry throws(TowlineError) in
            let state = RegisteredState(entry.snapshot.state)
            guard [.queued, .active, .waiting].contains(state) else {
                throw TowlineError(.illegalTransition, "the download cannot \(what) because it is \(state)")
            }
            entry.snapshot.reason = nil
            entry.snapshot.waitsUntil = nil
            body(&entry.snapshot)
            entry.snapshot.stopIfNotRunning()
        }
    }

    /// Changes an entry of the list and publishes its snapshot, in the order of the changes.
    private func update(
        _ id: DownloadID, _ body: (inout ScriptedList.Entry) throws(TowlineError) -> Void
    ) throws(TowlineError) {
        try contents.withLock { contents throws(TowlineError) in
            try contents.list.update(id, body)
            hub.publish(try contents.list.entry(id).snapshot)
        }
    }

    // MARK: The list

    /// Adds downloads, as `DownloadManager` describes. Each is `queued`, or `paused` if its request says so.
    @discardableResult
    public func add(contentsOf requests: [DownloadRequest]) async throws(TowlineError) -> [Download] {
        try command(.add(requests)) { contents throws(TowlineError) in
            var list = contents.list
            var changes: [DownloadEvent] = []
            let ids = try requests.map { request throws(TowlineError) in
                let (id, event) = try list.add(request, as: identifiers.next())
                if let event { changes.append(event) }
                return id
            }
            contents.list = list
            for case .added(let snapshot) in changes { hub.publish(.added(snapshot)) }
            for case .changed(let snapshot) in changes { hub.publish(snapshot) }
            return ids.map { Download(id: $0, manager: self) }
        }
    }

    /// Returns the download with the URL and the destination of a request, or `nil`.
    public func find(_ request: DownloadRequest) async throws(TowlineError) -> Download? {
        try read { list throws(TowlineError) in
            try list.find(request).map { Download(id: $0, manager: self) }
        }
    }

    /// Returns one page of the list.
    public func page(_ query: DownloadQuery = DownloadQuery()) async throws(TowlineError) -> DownloadPage {
        try read { $0.page(query) }
    }

    /// The number of downloads in each state, and the sums of their bytes.
    public var totals: DownloadTotals {
        get async throws(TowlineError) { try read { $0.totals } }
    }

    /// The events of all downloads from now on.
    public var events: DownloadEvents { hub.events }

    /// Pauses all downloads that can be paused, or those of a group.
    public func pauseAll(group: String?) async throws(TowlineError) {
        try command(.pauseAll(group: group)) { contents throws(TowlineError) in
            try contents.list.changeAll(.pause, from: [.queued, .active, .waiting], group)
            hub.publish(.listChanged)
            publishFollowed(contents.list)
        }
    }

    /// Starts all paused downloads, or those of a group: they are `queued` then.
    public func startAll(group: String?) async throws(TowlineError) {
        try command(.startAll(group: group)) { contents throws(TowlineError) in
            try contents.list.changeAll(.resume, from: [.paused], group)
            hub.publish(.listChanged)
            publishFollowed(contents.list)
        }
    }

    private func publishFollowed(_ list: ScriptedList) {
        for id in hub.followed { if let entry = try? list.entry(id) { hub.publish(entry.snapshot) } }
    }

    /// Ends all sequences. All other calls of the app then throw `closed`.
    public func close() async {
        contents.withLock { $0.isClosed = true }
        hub.close()
    }

    // MARK: One download

    /// Returns the current snapshot of a download.
    public func snapshot(of id: DownloadID) async throws(TowlineError) -> DownloadSnapshot {
        try read { list throws(TowlineError) in try list.entry(id).snapshot }
    }

    /// Returns a sequence of the snapshots of a download, beginning with the current one.
    public func snapshotStream(of id: DownloadID) async -> AsyncStream<DownloadSnapshot> {
        await hub.stream(id) { try? await snapshot(of: id) }
    }

    /// Carries out an action of the app, with the effects and errors of the real downloader.
    public func perform(_ action: DownloadAction, on id: DownloadID) async throws(TowlineError) {
        try command(.perform(action, id)) { contents throws(TowlineError) in
            if case .remove = action {
                try contents.list.remove(id)
                hub.publish(.removed(id))
                hub.end(id)
            } else {
                try contents.list.perform(action, on: id)
                hub.publish(try contents.list.entry(id).snapshot)
            }
        }
    }

    /// Returns the request of a download. For a download that was not added by a request, it has the URL and the
    /// destination of the snapshot.
    public func request(of id: DownloadID) async throws(TowlineError) -> DownloadRequest {
        try read { list throws(TowlineError) in try list.entry(id).request }
    }

    /// Returns notes of the timeline of a download, which ``note(_:_:of:)`` added.
    public func timeline(
        of id: DownloadID, after number: Int64, limit: Int
    ) async throws(TowlineError) -> [TimelineNote] {
        try read { list throws(TowlineError) in
            Array(try list.entry(id).notes.filter { $0.number > number }.prefix(min(max(1, limit), 10_000)))
        }
    }

    /// Returns one range: the held bytes, from the beginning of the file.
    public func segments(of id: DownloadID) async throws(TowlineError) -> DownloadSegments {
        try read { list throws(TowlineError) in
            let snapshot = try list.entry(id).snapshot
            return DownloadSegments(
                completeLength: snapshot.completeLength,
                written: ByteRangeSet(snapshot.heldBytes > 0 ? [ByteRange(0, snapshot.heldBytes)] : []))
        }
    }

    // MARK: Access

    private func read<Value>(
        _ body: (ScriptedList) throws(TowlineError) -> Value
    ) throws(TowlineError) -> Value {
        try contents.withLock { contents throws(TowlineError) in
            try contents.check()
            return try body(contents.list)
        }
    }

    private func command<Value>(
        _ command: Command, _ body: (inout Contents) throws(TowlineError) -> Value
    ) throws(TowlineError) -> Value {
        try contents.withLock { contents throws(TowlineError) in
            contents.commands.append(command)
            try contents.check()
            return try body(&contents)
        }
    }
}

extension ScriptedDownloader.Contents {
    /// Throws the error that the test set, or `closed` after the end of the list.
    fileprivate func check() throws(TowlineError) {
        if isClosed { throw TowlineError.managerClosed }
        if let failure { throw failure }
    }
}
