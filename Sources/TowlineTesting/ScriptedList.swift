import Foundation
import Towline
import TowlineCore

/// The downloads of a scripted downloader, in the order in which they were added or moved.
struct ScriptedList {
    /// A download of the list.
    struct Entry {
        var snapshot: DownloadSnapshot
        var request: DownloadRequest
        /// The text that is equal for two requests of the same download; `nil` if the URL is not valid.
        var identity: String?
        var notes: [TimelineNote] = []

        /// Creates the entry of a download that a test describes by its snapshot.
        init(_ snapshot: DownloadSnapshot) {
            self.snapshot = snapshot
            let directory = URL(fileURLWithPath: snapshot.directory, isDirectory: true)
            request = DownloadRequest(
                from: URL(string: snapshot.source) ?? directory,
                to: snapshot.file.map { .file($0) } ?? .directory(directory))
            identity = try? request.identity()
        }

        /// Creates the entry of a new download.
        init(_ request: DownloadRequest, as id: DownloadID) throws(TowlineError) {
            snapshot = try DownloadSnapshot(adding: request, as: id)
            identity = try request.identity()
            self.request = request
        }
    }

    private var entries: [Entry] = []

    private func index(of id: DownloadID) throws(TowlineError) -> Int {
        guard let index = entries.firstIndex(where: { $0.snapshot.id == id }) else { throw TowlineError.unknown(id) }
        return index
    }

    /// Returns the entry of a download. Throws `unknownDownload` if the list does not contain it.
    func entry(_ id: DownloadID) throws(TowlineError) -> Entry { entries[try index(of: id)] }

    mutating func append(_ entry: Entry) { entries.append(entry) }

    mutating func remove(_ id: DownloadID) throws(TowlineError) { entries.remove(at: try index(of: id)) }

    /// Changes the entry of a download, unless `body` throws an error.
    mutating func update(
        _ id: DownloadID, _ body: (inout Entry) throws(TowlineError) -> Void
    ) throws(TowlineError) {
        let index = try index(of: id)
        var entry = entries[index]
        try body(&entry)
        entries[index] = entry
    }

    /// Returns the identifier of the download with the URL and the destination of a request. Throws the error of the
    /// first invalid value of the request.
    func find(_ request: DownloadRequest) throws(TowlineError) -> DownloadID? {
        try request.check()
        let identity = try request.identity()
        return entries.first { $0.identity == identity }?.snapshot.id
    }

    /// Adds a download, or restarts the failed or cancelled download that the list contains for the same URL and
    /// directory. Returns its identifier and the event that reports the change; `nil` for none.
    mutating func add(
        _ request: DownloadRequest, as id: DownloadID
    ) throws(TowlineError) -> (DownloadID, DownloadEvent?) {
        let new = try Entry(request, as: id)
        guard let known = try find(request) else {
            entries.append(new)
            return (id, .added(new.snapshot))
        }
        let old = try entry(known).snapshot
        guard old.state == .failed || old.state == .cancelled else { return (known, nil) }
        try update(known) { entry in
            entry.request = request
            entry.snapshot.begin(in: new.snapshot.state)
            (entry.snapshot.group, entry.snapshot.metadata) = (request.group, request.metadata)
            entry.snapshot.priority = request.priority
        }
        return (known, .changed(try entry(known).snapshot))
    }

    // MARK: Actions

    /// Carries out an action other than a removal.
    mutating func perform(_ action: DownloadAction, on id: DownloadID) throws(TowlineError) {
        let index = try index(of: id)
        switch action {
        case .pause: try command(.pause, index)
        case .cancel: try command(.cancel, index)
        case .start:
            if entries[index].snapshot.state != .finished { return try command(.retry, index) }
            if case .failed(let number, _) = entries[index].snapshot.followUp {
                entries[index].snapshot.followUp = .running(number)
            }
        case .refetch: try refetch(index)
        case .remove: entries.remove(at: index)
        case .setPriority(let priority):
            entries[index].snapshot.priority = priority
            entries.append(entries.remove(at: index))
        case .move(let other): try move(index, before: other)
        case .setGroup(let group): entries[index].snapshot.group = group
        case .setMetadata(let metadata): entries[index].snapshot.metadata = metadata
        case .setRateLimit(let rate): try change(index) { $0.rateLimit = rate }
        case .setConnections(let count): try change(index) { $0.connections = count }
        case .setDirectory(let directory): try setDirectory(directory, index)
        case .setLink(let link, let publicAddressesOnly):
            try change(index) { request in
                request.follow(link)
                if publicAddressesOnly { request.publicAddressesOnly = true }
            }
        }
        entries[index].request.adopt(entries[index].snapshot)
    }

    private mutating func command(_ command: DownloadCommand, _ index: Int) throws(TowlineError) {
        let state = RegisteredState(entries[index].snapshot.state)
        switch command.effect(in: state) {
        case .none: return
        case .refused: throw TowlineError.refused(command, in: state, name: entries[index].snapshot.name)
        case .change(.paused): entries[index].snapshot.state = .paused
        case .change(.cancelled):
            entries[index].snapshot.state = .cancelled
            entries[index].snapshot.heldBytes = 0
            entries[index].snapshot.error = nil
            entries[index].snapshot.endedAt = Date()
        case .change: entries[index].snapshot.begin(in: .queued)
        }
        entries[index].snapshot.reason = nil
        entries[index].snapshot.waitsUntil = nil
        entries[index].snapshot.stopIfNotRunning()
    }

    private mutating func setDirectory(_ directory: URL, _ index: Int) throws(TowlineError) {
        guard RegisteredState(entries[index].snapshot.state) != .active else {
            throw TowlineError(
                .illegalTransition, "the download is running. Pause the download, then change its directory")
        }
        try change(index) { request in
            switch request.destination {
            case .directory: request.destination = .directory(directory)
            case .file(let file):
                request.destination = .file(
                    directory.appendingPathComponent(file.lastPathComponent, isDirectory: false))
            }
        }
        entries[index].snapshot.directory = directory.standardizedFileURL.path
    }

    private mutating func refetch(_ index: Int) throws(TowlineError) {
        let snapshot = entries[index].snapshot
        guard snapshot.state == .finished else {
            throw TowlineError.cannotBe("downloaded again", in: RegisteredState(snapshot.state), name: snapshot.name)
        }
        entries[index].snapshot.begin(in: .queued)
        (entries[index].snapshot.heldBytes, entries[index].snapshot.completeLength) = (0, nil)
        entries[index].snapshot.followUp = .none
    }

    /// Carries out a command for all downloads in one of the given states, or those of a group.
    mutating func changeAll(
        _ command: DownloadCommand, from states: [RegisteredState], _ group: String?
    ) throws(TowlineError) {
        for (index, entry) in entries.enumerated()
        where states.contains(RegisteredState(entry.snapshot.state)) && (group == nil || entry.snapshot.group == group)
        {
            try self.command(command, index)
        }
    }

    private mutating func move(_ index: Int, before other: DownloadID?) throws(TowlineError) {
        let entry = entries[index]
        guard let other else { return entries.append(entries.remove(at: index)) }
        guard other != entry.snapshot.id, let target = try? self.entry(other) else { return }
        guard target.snapshot.priority == entry.snapshot.priority else {
            throw TowlineError(
                .unusableOption,
                "cannot move a download before one of another priority. Give both the same priority first")
        }
        entries.remove(at: index)
        entries.insert(entry, at: try self.index(of: other))
    }

    /// Changes the request of a download. Throws the error of an invalid value, and then changes nothing.
    private mutating func change(_ index: Int, _ body: (inout DownloadRequest) -> Void) throws(TowlineError) {
        var request = entries[index].request
        body(&request)
        let changed = try DownloadSnapshot(adding: request, as: entries[index].snapshot.id)
        entries[index].request = request
        entries[index].identity = try request.identity()
        entries[index].snapshot.source = changed.source
    }

    // MARK: Queries

    /// Returns one page of the downloads that match a query. The cursor is the number of downloads before the page.
    func page(_ query: DownloadQuery) -> DownloadPage {
        let text = query.text?.lowercased()
        var found = entries.map(\.snapshot).filter { snapshot in
            (query.filters.isEmpty || query.filters.contains(snapshot.registeredState))
                && (query.group == nil || snapshot.group == query.group)
                && (text.map { text in
                    snapshot.source.lowercased().contains(text) || snapshot.name?.lowercased().contains(text) == true
                } ?? true)
        }
        found = Self.sorted(found, by: query.order)
        if query.descending { found.reverse() }
        let start = query.cursor.flatMap { Int($0.text) } ?? 0
        let rest = found.dropFirst(start)
        let page = Array(rest.prefix(min(max(1, query.limit), 1000)))
        let end = start + page.count
        return DownloadPage(
            downloads: page, next: end < found.count ? DownloadCursor(text: String(end)) : nil)
    }

    private static func sorted(
        _ snapshots: [DownloadSnapshot], by order: DownloadQuery.Order
    ) -> [DownloadSnapshot] {
        /// Sorts by a value, and keeps the order of downloads with equal values.
        func sorted<Value: Comparable>(by value: (DownloadSnapshot) -> Value) -> [DownloadSnapshot] {
            snapshots.enumerated().sorted { left, right in
                let values = (value(left.element), value(right.element))
                return values.0 == values.1 ? left.offset < right.offset : values.0 < values.1
            }.map(\.element)
        }
        switch order {
        case .queue: return sorted { -$0.priority }
        case .added: return sorted { $0.id }
        case .name: return sorted { $0.name ?? "" }
        case .size: return sorted { $0.completeLength ?? 0 }
        case .state: return sorted { $0.registeredState.number }
        case .ended: return sorted { $0.endedAt ?? .distantPast }
        }
    }

    var totals: DownloadTotals {
        var totals = DownloadTotals()
        for filter in DownloadQuery.Filter.allCases { totals.counts[filter] = 0 }
        for entry in entries {
            totals.counts[entry.snapshot.registeredState, default: 0] += 1
            totals.heldBytes += entry.snapshot.heldBytes
            totals.completeLength += entry.snapshot.completeLength ?? 0
        }
        return totals
    }
}

extension DownloadSnapshot {
    /// The state that the list of a real downloader stores.
    fileprivate var registeredState: RegisteredState {
        if state == .finished, case .failed = followUp { .followUpFailed } else { RegisteredState(state) }
    }

    /// Starts a download again: without the results of its last run.
    mutating func begin(in state: DownloadState) {
        if self.state == .cancelled { heldBytes = 0 }
        (self.state, error, endedAt, receivedBytes) = (state, nil, nil, 0)
    }

    /// Sets the reason that a real download could have in a state that was set after the snapshot `old`, unless the
    /// reason was set, too.
    mutating func completeReason(after old: DownloadSnapshot) {
        if state != old.state, reason == old.reason { reason = nil }
        guard reason == nil else { return }
        switch state {
        case .waiting(let wait): reason = wait.exampleReason
        case .failed:
            error = error ?? TowlineError(.transient, "the network or the server failed. Start the download again")
            reason = error?.message
        default: break
        }
    }

    /// Removes what only a running download has, if it does not run.
    mutating func stopIfNotRunning() {
        guard RegisteredState(state) != .active else { return }
        (rate, remaining, connections) = (nil, nil, 0)
        canPauseWithoutLoss = true
    }
}

extension DownloadState.WaitReason {
    /// A text as the reason of a real download that waits.
    var exampleReason: String {
        switch self {
        case .network: "this machine has no network connection"
        case .diskSpace: "no space is left on the disk. Free some space, then resume the download"
        case .destination: "the file system is read-only. Mount it for writing"
        case .server: "the server asked for a pause before the next request (Retry-After)"
        case .retry: "the server closed the connection"
        }
    }
}

extension DownloadRequest {
    /// Takes over the values that a snapshot shows.
    mutating func adopt(_ snapshot: DownloadSnapshot) {
        (priority, group, metadata) = (snapshot.priority, snapshot.group, snapshot.metadata)
    }
}
