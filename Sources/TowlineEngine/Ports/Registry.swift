package import TowlineCore

/// The permanent list of the requested downloads, with their order, state, options and history.
///
/// The byte ranges are in the journals only, so that each fact has one source. `heldBytes` is the last reported value.
/// The registry is the only place, besides memory, that holds secrets (URLs and options as given).
///
/// A change is durable when the call returns: it survives a power loss. A call that changes several things changes
/// all of them or none. Cancelling the caller's task does not undo a call. A call blocks its thread only to enqueue.
package protocol Registry: AnyObject, Sendable {
    /// The messages since the registry was opened: a damaged database was set aside, downloads were rebuilt. Any later
    /// call may find damage; the call then continues with the new database and adds a notice.
    var notices: [String] { get }

    /// Adds downloads at the end of their priority, in order. Skips a download whose `identity` is already in the list.
    func add(_ downloads: [RegisteredDownload]) async throws(TowlineError) -> [RegistryAddition]

    /// Returns the downloads with the given names in the order of `ids`, from one snapshot. Omits missing downloads.
    func downloads(_ ids: [DownloadID]) async throws(TowlineError) -> [RegisteredDownload]

    /// Returns the names that match the abbreviation `short`, at most `limit` names.
    func names(matching short: ShortDownloadID, limit: Int) async throws(TowlineError) -> [DownloadID]

    /// Returns one page of the list.
    func page(_ query: RegistryQuery) async throws(TowlineError) -> RegistryPage

    /// Applies changes and adds their entries to the timelines.
    ///
    /// - Returns: the outcome of each change, in the same order.
    @discardableResult
    func apply(_ changes: [RegistryChange]) async throws(TowlineError) -> [RegistryOutcome]

    /// Moves a download before another of the same priority, or to the end for `nil`. Throws `unusableOption` if the
    /// priorities differ. Does nothing if either download is missing.
    func move(_ id: DownloadID, before: DownloadID?) async throws(TowlineError)

    /// Removes downloads and their timelines, so that no file of the registry contains their data.
    ///
    /// - Parameter state: The only state to remove; a download in another state stays. `nil` means every state.
    /// - Returns: the outcome of each removal, in the same order.
    @discardableResult
    func remove(_ ids: [DownloadID], onlyFrom state: RegisteredState?) async throws(TowlineError) -> [RegistryOutcome]

    /// Returns the first queued downloads by priority and place, without downloads of blocked hosts and groups.
    func nextQueued(limit: Int, blockedHosts: Set<String>, blockedGroups: Set<String>) async throws(TowlineError)
        -> [RegisteredDownload]

    /// Makes queued downloads active, so that their transfers may start. No two callers get the same download.
    ///
    /// - Returns: The downloads of `ids` that were queued, in their new state.
    func claim(_ ids: [DownloadID]) async throws(TowlineError) -> [RegisteredDownload]

    /// Moves downloads from the given states to `state`: the downloads of `group`, or of all groups for `nil`. Returns
    /// the number of changed downloads.
    func changeAll(from states: Set<RegisteredState>, to state: RegisteredState, group: String?)
        async throws(TowlineError) -> Int

    /// Returns the events of a download after entry `number`, oldest first, at most `limit` entries.
    func timeline(of id: DownloadID, after number: Int64, limit: Int) async throws(TowlineError) -> [TimelineEntry]

    /// Returns the number of downloads in each state and the sums of their bytes.
    func totals() async throws(TowlineError) -> RegistryTotals

    /// Stores a named value, such as a setting or the limit of a group. `nil` removes the value.
    func setValue(_ value: String?, for name: String) async throws(TowlineError)

    /// Returns the stored values whose names begin with `prefix`, by name.
    func values(prefix: String) async throws(TowlineError) -> [String: String]

    /// Returns the stored knowledge about hosts, by origin, as text in the caller's own format.
    func hostKnowledge() async throws(TowlineError) -> [String: String]

    /// Stores knowledge about a host. Keeps the 10,000 most recently written hosts.
    func setHostKnowledge(_ knowledge: String, for origin: String) async throws(TowlineError)

    /// Closes the database and releases the locks. Later calls throw.
    func close() async
}

extension Registry {
    /// Returns the download with the given name, or `nil` if the list does not contain the download.
    package func download(_ id: DownloadID) async throws(TowlineError) -> RegisteredDownload? {
        try await downloads([id]).first
    }

    /// Removes downloads in every state.
    package func remove(_ ids: [DownloadID]) async throws(TowlineError) { try await remove(ids, onlyFrom: nil) }
}

/// A download as the registry stores it.
package struct RegisteredDownload: Hashable, Sendable {
    /// The name of the download.
    package var id: DownloadID
    /// The URL as given, with its secrets.
    package var source: String
    /// The origin of the URL: `scheme://host:port`.
    package var host: String
    /// The directory for the file.
    package var directory: String
    /// The final name; `nil` until the user or the server gives a name.
    package var name: String?
    /// A permanent key of the request, equal for two requests of the same URL to the same place whatever their results.
    package var identity: String
    /// The options, in the caller's own format.
    package var options: [UInt8]
    /// Key-value pairs of the caller, returned unchanged.
    package var metadata: [String: String]
    /// The group of the download; `nil` for no group.
    package var group: String?
    /// The priority; downloads with a higher priority start first.
    package var priority: Int
    /// The state of the download.
    package var state: RegisteredState
    /// The reason for a wait or a failure, as text.
    package var reason: String?
    /// The reason as a code: the `TowlineError.Code` of a failure, or the cause of a wait.
    package var reasonCode: String?
    /// The HTTP status of a failure.
    package var status: Int?
    /// The time at which a wait ends, in milliseconds since 1970.
    package var waitUntil: Int64?
    /// The complete length in bytes; `nil` while unknown.
    package var completeLength: Int64?
    /// The number of bytes in the part file at the last report.
    package var heldBytes: Int64
    /// The time at which the download was added, in milliseconds since 1970.
    package var addedAt: Int64
    /// The time at which the download ended, in milliseconds since 1970; `nil` before the end.
    package var endedAt: Int64?

    /// Creates a download that has not started and holds no bytes.
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

/// The outcome of an addition.
package enum RegistryAddition: Hashable, Sendable {
    /// The download is new.
    case added
    /// The list already contains a download with the same identity, under this name.
    case existing(DownloadID)
}

/// The outcome of a change.
package enum RegistryOutcome: Hashable, Sendable {
    /// The change is durable.
    case applied
    /// The download is not in the state that the change requires (`RegistryChange.onlyFrom`) and is unchanged.
    case otherState
    /// The download is not in the list.
    case missing
}

/// Fields of one download that change together. `nil` leaves a field unchanged. In a doubly optional field, an inner
/// `nil` clears the field and an inner value sets the field.
package struct RegistryChange: Hashable, Sendable {
    /// The name of the download.
    package var id: DownloadID
    /// The new state with its reason. Setting the state replaces the reason, the code, the status and the wait.
    package var state: State?
    /// The new directory, after the file was moved. The identity stays.
    package var directory: String?
    /// The final name.
    package var name: String?
    /// The new URL, after the caller renewed it. The identity stays.
    package var source: String?
    /// The origin of the new URL.
    package var host: String?
    /// The new identity, without secrets.
    package var identity: String?
    /// The options, in the caller's own format.
    package var options: [UInt8]?
    /// Key-value pairs of the caller.
    package var metadata: [String: String]?
    /// The group.
    package var group: String??
    /// The priority; the download moves to the end of this priority.
    package var priority: Int?
    /// The complete length in bytes.
    package var completeLength: Int64??
    /// The number of bytes in the part file.
    package var heldBytes: Int64?
    /// The entries to add to the timeline.
    package var entries: [TimelineEntry]
    /// The state that the download must have; a download in another state is not changed. `nil` for every state.
    package var onlyFrom: RegisteredState?

    /// A state with its reason, status and times.
    package struct State: Hashable, Sendable {
        /// The state.
        package var state: RegisteredState
        /// The reason as text.
        package var reason: String?
        /// The reason as a code.
        package var reasonCode: String?
        /// The HTTP status of a failure.
        package var status: Int?
        /// The time at which a wait ends, in milliseconds since 1970.
        package var waitUntil: Int64?
        /// The end of the download in milliseconds since 1970; `nil` for states in which the download has not ended.
        package var endedAt: Int64?

        /// Creates a state.
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

    /// Creates a change of the state, the timeline or, by default, no field.
    package init(_ id: DownloadID, state: State? = nil, entries: [TimelineEntry] = []) {
        self.id = id
        self.state = state
        self.entries = entries
    }
}

/// An event of a download and its reason.
package struct TimelineEntry: Hashable, Sendable {
    /// The number of the entry, ascending within the registry; 0 before the entry is stored.
    package var number: Int64
    /// The time of the event, in milliseconds since 1970.
    package var time: Int64
    /// A stable name for programs, such as `restarted`.
    package var kind: String
    /// The message, one sentence without secrets.
    package var message: String

    /// Creates an entry.
    package init(number: Int64 = 0, time: Int64, kind: String, message: String) {
        self.number = number
        self.time = time
        self.kind = kind
        self.message = message
    }
}

/// A request for one page of the list: a filter, an order and a start.
package struct RegistryQuery: Hashable, Sendable {
    /// The sort key. Downloads with equal keys are ordered by the time of their addition to the registry.
    package enum Order: String, Hashable, Sendable, CaseIterable {
        /// Priority and place: the order in which downloads start.
        case queue
        /// The time of the addition.
        case added
        /// The final name.
        case name
        /// The complete length.
        case size
        /// The state.
        case state
        /// The time of the end.
        case ended
    }

    /// The order.
    package var order = Order.queue
    /// `true` to reverse the order.
    package var descending = false
    /// The states to include; empty for every state.
    package var states: Set<RegisteredState> = []
    /// The group to include; `nil` for every download.
    package var group: String?
    /// A text that the name or the URL without secrets must contain, ignoring case; `nil` for no such filter.
    package var text: String?
    /// The end of the previous page; `nil` for the first page. Valid only with the same order and filter.
    package var cursor: RegistryCursor?
    /// The maximum number of downloads on the page.
    package var limit = 100

    /// Creates a query for the first page of all downloads.
    package init() {}
}

/// The end of a page. Opaque: only the registry that created the cursor can read it.
package struct RegistryCursor: Hashable, Sendable {
    /// The registry's own encoding of the position.
    package let text: String

    /// Creates a cursor from the registry's encoding.
    package init(text: String) { self.text = text }
}

/// A page of the list.
package struct RegistryPage: Hashable, Sendable {
    /// The downloads.
    package var downloads: [RegisteredDownload]
    /// The start of the next page; `nil` on the last page.
    package var next: RegistryCursor?

    /// Creates a page.
    package init(downloads: [RegisteredDownload], next: RegistryCursor?) {
        self.downloads = downloads
        self.next = next
    }
}

/// Sums over the list.
package struct RegistryTotals: Hashable, Sendable {
    /// The number of downloads in each state.
    package var counts: [RegisteredState: Int] = [:]
    /// The sum of the bytes in the part files of all downloads.
    package var heldBytes: Int64 = 0
    /// The sum of the complete lengths in bytes, for the downloads whose length is known.
    package var completeLength: Int64 = 0

    /// Creates totals of an empty list.
    package init() {}
}
