import TowlineCore
import TowlineEngine

extension RegisteredDownload {
    /// Creates the registry entry of a new download from its request. Throws the error of the first invalid value of
    /// the request. `time` is in milliseconds since 1970.
    init(_ id: DownloadID, _ request: DownloadRequest, at time: Int64) throws(TowlineError) {
        // Rejects requests that cannot run.
        _ = try request.options(known: nil)
        for followUp in request.followUps { try followUp.check() }
        let source = try request.source
        let place = try request.place
        self.init(
            id: id, source: request.url.absoluteString, host: source.origin.description,
            directory: place.directory, name: place.name, identity: try request.identity(),
            options: try StoredRequest.encode(request), metadata: request.metadata, group: request.group,
            priority: request.priority, state: request.startsPaused ? .paused : .queued,
            addedAt: time)
    }

    /// Throws `unusableDestination` if this download, which is added again, has a file name and `existing`, the entry
    /// of the list for its URL and directory, has another one or gets a name from the server.
    func checkName(against existing: RegisteredDownload, _ running: RunningDownloads) throws(TowlineError) {
        guard let name else { return }
        // The entry has another name if a follow-up moved the file.
        let requested = try? StoredRequest.decode(existing.options).place.name
        let other = requested ?? running.snapshot(of: existing.id)?.name ?? existing.name
        if other == name { return }
        // A download that ended or waits, and has no name yet, restarts with the new request and its name.
        if other == nil, ![.queued, .active, .paused].contains(existing.state) { return }
        let found = other.map { "with the name \(TerminalSafeText.make($0))" } ?? "with a name that the server supplies"
        var error = TowlineError(
            .unusableDestination,
            "\(DownloadSnapshot(self).source): the list already contains this URL in \(directory), \(found). Remove that "
                + "download, or choose another directory")
        error.fields = ["name"]
        throw error
    }
}

extension RegistryChange {
    /// Creates the change of a registry entry that restarts a download with a new request.
    ///
    /// - Parameters:
    ///   - record: the entry of the download.
    ///   - asked: the entry that the new request would have as a new download.
    ///   - time: the time of the change in milliseconds since 1970.
    init(
        restarting record: RegisteredDownload, as request: DownloadRequest, _ asked: RegisteredDownload, at time: Int64
    ) throws(TowlineError) {
        var request = request
        // The restriction of the earlier request stays in effect, so that another caller cannot remove it.
        let old = try? StoredRequest.decode(record.options)
        if let old, old.publicAddressesOnly { request.publicAddressesOnly = true }
        if let old, (try? old.place.directory) == asked.directory { request.fileSystem = old.fileSystem }
        self.init(record.id, state: .init(asked.state))
        options = try StoredRequest.encode(request)
        source = asked.source
        host = asked.host
        // A file that a follow-up moved is downloaded to its original destination and moved again.
        if record.state.isComplete || record.directory != asked.directory {
            (directory, name) = (asked.directory, asked.name)
        }
        metadata = asked.metadata
        group = .some(asked.group)
        if asked.priority != record.priority { priority = asked.priority }
        note("added", "the download was added again and restarts", at: time)
    }

    /// Creates the change of a registry entry that downloads the file of a finished download again. Throws
    /// `illegalTransition` if a follow-up replaced the file with the directory that it unpacked. `time` is in
    /// milliseconds since 1970.
    ///
    /// - Parameter new: a new request, and the entry that it would have as a new download; `nil` to use the stored
    ///   request.
    init(
        refetching record: RegisteredDownload, as new: (DownloadRequest, RegisteredDownload)? = nil, at time: Int64
    ) throws(TowlineError) {
        var request = (try? StoredRequest.decode(record.options)) ?? DownloadRequest(record)
        let state = FollowUpState(code: record.reasonCode, reason: record.reason)
        guard
            !request.followUps.prefix(state.completedCount(of: request.followUps.count)).contains(where: \.deletesFile)
        else {
            throw TowlineError(
                .illegalTransition,
                "\(TerminalSafeText.make(record.name ?? "the file")) cannot be downloaded again because it was unpacked "
                    + "and deleted. Remove the unpacked directory, then add the download again")
        }
        if case (var new, let asked)? = new {
            new.replacesOwnFile = true
            try self.init(restarting: record, as: new, asked, at: time)
            (directory, name, entries) = (nil, nil, [])
        } else {
            request.replacesOwnFile = true
            self.init(record.id, state: .init(.queued))
            options = try StoredRequest.encode(request)
        }
        completeLength = .some(nil)
        heldBytes = 0
        let message = "the finished file is downloaded again; the old file stays until the new one is complete"
        note("refetched", message, at: time)
    }

    /// Creates the change of a registry entry that replaces the request of a download. Throws the error of the first
    /// invalid value.
    init(_ record: RegisteredDownload, replacingRequestWith request: DownloadRequest) throws(TowlineError) {
        _ = try request.options(known: nil)
        self.init(record.id)
        options = try StoredRequest.encode(request)
        if request.metadata != record.metadata { metadata = request.metadata }
        if request.priority != record.priority { priority = request.priority }
        if request.group != record.group { group = .some(request.group) }
        if request.url.absoluteString != record.source {
            source = request.url.absoluteString
            host = try request.source.origin.description
        }
    }

    /// Creates the change of a registry entry to `state`, as a command such as pause requests for a download without a
    /// transfer. `time` is in milliseconds since 1970.
    init(_ record: RegisteredDownload, to state: RegisteredState, for command: DownloadCommand, at time: Int64) {
        self.init(record.id, state: .init(state))
        if state == .cancelled {
            self.state?.endedAt = time
            heldBytes = 0
        }
        if command == .retry, record.state == .cancelled {
            note("retried", "the cancelled download was started again", at: time)
        } else {
            let verb = state == .queued ? DownloadCommand.resume.participle : command.participle
            note(verb, "the download was \(verb)", at: time)
        }
    }

    /// Sets the directory and the name of the file, for example after a follow-up action moved it.
    mutating func setPlace(_ place: Place) { (directory, name) = (place.directory, place.name) }

    /// Adds a note to the timeline (the history) of the download, with a stable name for programs (`kind`), a text for
    /// people, and the time in milliseconds since 1970.
    mutating func note(_ kind: String, _ message: String, at time: Int64) {
        entries.append(TimelineNote(time: time, kind: kind, message: message))
    }
}

extension DownloadCommand {
    /// The participle of the command, such as `paused`, for error messages and the timeline (history) of a download.
    var participle: String {
        switch self {
        case .pause: "paused"
        case .resume: "resumed"
        case .retry: "retried"
        case .cancel: "cancelled"
        }
    }
}
