package import TowlineCore

/// The permanent list of the requested downloads, with their order, state, options and history: a database.
///
/// The byte ranges are in the journals only, so that they are stored once. `heldBytes` is the last reported value. The
/// registry is the only place, besides memory, that holds secrets (URLs and options as given).
///
/// A change is durable when the call returns: it survives a power loss. A call that changes several things changes all
/// of them or none. Cancelling the caller's task does not undo a call. A call blocks its thread only to enqueue.
package protocol Registry: AnyObject, Sendable {
    /// Adds downloads to the list, each behind the downloads with the same priority. Skips a download if the list
    /// already contains its `identity` (key of URL and destination). Returns the outcome of each addition, in the same
    /// order.
    ///
    /// - Parameter check: a quick function that the registry calls for each skipped download, with the entry of the
    ///   list and the skipped one. No other call changes the list between the check and the addition. If `check`
    ///   throws, no download is added.
    func add(_ downloads: [RegisteredDownload], check: @escaping RegistryDuplicateCheck)
        async throws(TowlineError) -> [RegistryAddition]

    /// Returns the downloads with the given IDs, in the order of `ids`, all read at one moment. Omits IDs that are not
    /// in the registry.
    func downloads(_ ids: [DownloadID]) async throws(TowlineError) -> [RegisteredDownload]

    /// Returns the ID of the download with this `identity` (key of URL and destination); `nil` if the registry contains
    /// none.
    func find(identity: String) async throws(TowlineError) -> DownloadID?

    /// Returns the IDs of the downloads that match the abbreviated ID `short`, at most `limit` IDs.
    func names(matching short: ShortDownloadID, limit: Int) async throws(TowlineError) -> [DownloadID]

    /// Returns the downloads with the file name `name`, at most `limit`. A download whose file name is not known yet
    /// has the last component of its URL as its name.
    func downloads(named name: String, limit: Int) async throws(TowlineError) -> [RegisteredDownload]

    /// Returns one page of the list of downloads: those that `query` selects, in its order.
    func page(_ query: DownloadQuery) async throws(TowlineError) -> RegistryPage

    /// Applies changes to downloads and adds the events in `RegistryChange.entries` to their histories (timelines).
    ///
    /// - Returns: the outcome of each change, in the same order.
    @discardableResult
    func apply(_ changes: [RegistryChange]) async throws(TowlineError) -> [RegistryOutcome]

    /// Moves a download in the queue before the download `before`, which must have the same priority, or to the end for
    /// `nil`. Throws `unusableOption` if the priorities differ; does nothing if either download is not in the registry.
    func move(_ id: DownloadID, before: DownloadID?) async throws(TowlineError)

    /// Removes downloads and their histories, so that no file of the registry contains their data.
    ///
    /// - Parameter state: The only state to remove; a download in another state stays. `nil` means every state.
    ///
    /// - Returns: the outcome of each removal, in the order of `ids`.
    @discardableResult
    func remove(_ ids: [DownloadID], onlyFrom state: RegisteredState?) async throws(TowlineError) -> [RegistryOutcome]

    /// Returns the first `limit` queued downloads in the order in which they start: by priority, then by position in
    /// the queue. Skips the downloads of `blockedHosts` and `blockedGroups`.
    func nextQueued(limit: Int, blockedHosts: Set<String>, blockedGroups: Set<String>) async throws(TowlineError)
        -> [RegisteredDownload]

    /// Changes queued downloads to the state `active`, so that the caller may start their transfers. No two callers get
    /// the same download.
    ///
    /// - Returns: The downloads of `ids` that were queued, in their new state.
    func claim(_ ids: [DownloadID]) async throws(TowlineError) -> [RegisteredDownload]

    /// Changes all downloads of `group` (`nil`: of all groups) that are in one of the given states to `state`. Returns
    /// the number of changed downloads.
    func changeAll(from states: Set<RegisteredState>, to state: RegisteredState, group: String?)
        async throws(TowlineError) -> Int

    /// Returns the events in the history of a download whose sequence numbers are greater than `number`, oldest first,
    /// at most `limit` events.
    func timeline(of id: DownloadID, after number: Int64, limit: Int) async throws(TowlineError) -> [TimelineNote]

    /// Returns the number of downloads in each state, and the sums of their lengths and downloaded bytes.
    func totals() async throws(TowlineError) -> DownloadTotals

    /// Stores a value of the caller, such as a setting or the limit of a group of downloads, under a name. `nil`
    /// removes the value.
    func setValue(_ value: String?, for name: String) async throws(TowlineError)

    /// Returns the values that `setValue` stored under names that begin with `prefix`, as a dictionary by name.
    func values(prefix: String) async throws(TowlineError) -> [String: String]

    /// Returns the observations about each host that `setHostKnowledge` stored, such as its connection limit, as text
    /// by origin (`scheme://host:port`).
    func hostKnowledge() async throws(TowlineError) -> [String: String]

    /// Stores observations about a host, such as its connection limit, as text in the caller's own format. Keeps the
    /// 10,000 hosts that were written last.
    func setHostKnowledge(_ knowledge: String, for origin: String) async throws(TowlineError)

    /// Closes the database of downloads and releases its locks. Later calls of the registry throw.
    func close() async
}

/// A function that throws an error if a download that is added must not be skipped in favour of `existing`, the entry
/// of the list with the same `identity`.
package typealias RegistryDuplicateCheck =
    @Sendable (_ existing: RegisteredDownload, _ new: RegisteredDownload) throws(TowlineError) -> Void

/// Shorter forms of the functions of a registry.
extension Registry {
    /// Adds downloads to the list, and skips those whose `identity` the list already contains.
    package func add(_ downloads: [RegisteredDownload]) async throws(TowlineError) -> [RegistryAddition] {
        try await add(downloads) { _, _ in }
    }

    /// Returns the download with the given ID, or `nil` if the registry does not contain the download.
    package func download(_ id: DownloadID) async throws(TowlineError) -> RegisteredDownload? {
        try await downloads([id]).first
    }

    /// Removes downloads and their histories, whatever state the downloads are in.
    package func remove(_ ids: [DownloadID]) async throws(TowlineError) { try await remove(ids, onlyFrom: nil) }
}

/// A download with its state and options, as the registry stores it.
package struct RegisteredDownload: Hashable, Sendable {
    /// The ID of the download.
    package var id: DownloadID
    /// The URL as given, with its secrets.
    package var source: String
    /// The origin of the URL: `scheme://host:port`.
    package var host: String
    /// The path of the directory in which the file is stored.
    package var directory: String
    /// The final file name; `nil` until the user or the server gives a name.
    package var name: String?
    /// A permanent key of the request: two requests of one URL to one destination have equal keys, whatever file names
    /// result. `Registry.add` skips a request whose key is already in the registry.
    package var identity: String
    /// The download options, in the caller's own format.
    package var options: [UInt8]
    /// Key-value pairs that a user or program attached to the download for their own use. They do not affect the
    /// transfer.
    package var metadata: [String: String]
    /// The name of the group that the download belongs to, for common limits and commands; `nil` for no group.
    package var group: String?
    /// The priority; downloads with a higher priority start first.
    package var priority: Int
    /// The state of the download, such as queued, active or finished.
    package var state: RegisteredState
    /// The reason why the download waits or failed, as text for the user; `nil` for no reason.
    package var reason: String?
    /// The reason why the download waits or failed, as a code for programs, such as a `TowlineError.Code`; `nil` for no
    /// reason.
    package var reasonCode: String?
    /// The HTTP status that made the download fail; `nil` if no status caused the failure.
    package var status: Int?
    /// The time until which the download waits, in milliseconds since 1970; `nil` if it does not wait for a time.
    package var waitUntil: Int64?
    /// The length of the complete file in bytes; `nil` while unknown.
    package var completeLength: Int64?
    /// The number of bytes in the part file when the download last reported it.
    package var heldBytes: Int64
    /// The time at which the download was added, in milliseconds since 1970.
    package var addedAt: Int64
    /// The time at which the download ended, in milliseconds since 1970; `nil` before the end.
    package var endedAt: Int64?

    /// Creates a download that has not started and has no bytes.
    package init(
        id: DownloadID, source: String, host: String, directory: String, name: String?, identity: String,
        options: [UInt8] = [], metadata: [String: String] = [:], group: String? = nil, priority: Int = 0,
        state: RegisteredState = .queued, addedAt: Int64
    ) {
        self.id = id
        self.source = source
        self.host = host
        self.directory = directory
        self.name = name
        self.identity = identity
        self.options = options
        self.metadata = metadata
        self.group = group
        self.priority = priority
        self.state = state
        self.heldBytes = 0
        self.addedAt = addedAt
    }
}

/// The outcome of adding one download to the registry.
package enum RegistryAddition: Hashable, Sendable {
    /// The download was not in the registry and was added.
    case added
    /// The registry already contains a download with the same `identity` (key of URL and destination), under the given
    /// ID. The new download was not added.
    case existing(DownloadID)
}

/// The outcome of changing or removing one download in the registry.
package enum RegistryOutcome: Hashable, Sendable {
    /// The change or removal is stored, and survives a power loss.
    case applied
    /// The download was not changed, because it is not in the state that the caller required
    /// (`RegistryChange.onlyFrom`).
    case otherState
    /// The registry does not contain the download.
    case missing
}

/// A change of several fields of one download, made together. `nil` leaves a field unchanged. In a doubly optional
/// field, an inner `nil` clears the field and an inner value sets the field.
package struct RegistryChange: Hashable, Sendable {
    /// The ID of the download to change.
    package var id: DownloadID
    /// The new state with its reason and times. It replaces the earlier reason, reason code, HTTP status and time until
    /// which the download waits; `nil` leaves all unchanged.
    package var state: State?
    /// The new directory of the file, after the file was moved; `nil` leaves it unchanged. `identity`, the key of the
    /// request, does not change.
    package var directory: String?
    /// The new final file name; `nil` leaves it unchanged.
    package var name: String?
    /// The new URL, after the caller renewed an expired link; `nil` leaves it unchanged. `identity`, the key of the
    /// request, does not change.
    package var source: String?
    /// The origin of the new URL (`scheme://host:port`); `nil` leaves it unchanged.
    package var host: String?
    /// The new key of the request (`RegisteredDownload.identity`), when secrets are removed from the stored URL; `nil`
    /// leaves it unchanged.
    package var identity: String?
    /// The new download options, in the caller's own format; `nil` leaves them unchanged.
    package var options: [UInt8]?
    /// The new key-value pairs of the user, which replace all earlier ones; `nil` leaves them unchanged.
    package var metadata: [String: String]?
    /// The new group of the download, for common limits; an inner `nil` removes the download from its group, an outer
    /// `nil` changes nothing.
    package var group: String??
    /// The new priority, and the download moves behind all others with this priority; `nil` leaves it unchanged.
    package var priority: Int?
    /// The length of the complete file in bytes; an inner `nil` stores it as unknown, an outer `nil` changes nothing.
    package var completeLength: Int64??
    /// The new number of bytes in the part file; `nil` leaves it unchanged.
    package var heldBytes: Int64?
    /// The events to add to the download's history (timeline), which `Registry.timeline` returns.
    package var entries: [TimelineNote]
    /// The state that the download must have for the change; in another state it is not changed
    /// (`RegistryOutcome.otherState`). `nil` for every state.
    package var onlyFrom: RegisteredState?

    /// The new state of a download with its reason, HTTP status and times.
    package struct State: Hashable, Sendable {
        /// The new state of the download, such as queued or finished.
        package var state: RegisteredState
        /// The reason why the download waits or failed, as text for the user; `nil` for no reason.
        package var reason: String?
        /// The reason why the download waits or failed, as a code for programs, such as a `TowlineError.Code`; `nil`
        /// for no reason.
        package var reasonCode: String?
        /// The HTTP status that made the download fail; `nil` if no status caused the failure.
        package var status: Int?
        /// The time until which the download waits, in milliseconds since 1970; `nil` if it does not wait for a time.
        package var waitUntil: Int64?
        /// The time at which the download ended, in milliseconds since 1970; `nil` if it has not ended.
        package var endedAt: Int64?

        /// Creates the new state of a download, with its reason and its times.
        package init(
            _ state: RegisteredState, reason: String? = nil, reasonCode: String? = nil, status: Int? = nil,
            waitUntil: Int64? = nil, endedAt: Int64? = nil
        ) {
            self.state = state
            self.reason = reason
            self.reasonCode = reasonCode
            self.status = status
            self.waitUntil = waitUntil
            self.endedAt = endedAt
        }
    }

    /// Creates a change of one download: of its state, of its history (`entries`) or, by default, of nothing until
    /// other fields are set.
    package init(_ id: DownloadID, state: State? = nil, entries: [TimelineNote] = []) {
        self.id = id
        self.state = state
        self.entries = entries
    }
}

/// A page of the list of downloads, the result of a `DownloadQuery`.
package struct RegistryPage: Hashable, Sendable {
    /// The downloads on the page, in the order of the query.
    package var downloads: [RegisteredDownload]
    /// The position in the list at which the next page begins; `nil` on the last page.
    package var next: DownloadCursor?

    /// Creates a page from its downloads and the position at which the next page begins (`next`).
    package init(downloads: [RegisteredDownload], next: DownloadCursor?) {
        self.downloads = downloads
        self.next = next
    }
}
