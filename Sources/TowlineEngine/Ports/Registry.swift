package import TowlineCore

/// What is asked: the list of downloads with their order, state, options and history, kept for ever.
///
/// Byte ranges are not in it: those are in the journals, one truth for each thing. `heldBytes` is only what was last
/// heard. It is the one place, besides memory, that holds secrets (URLs and options as given).
///
/// Everything that returns has happened durably: after a power loss it is there. Calls that change several things
/// change all of them or none. Cancelling the caller's task does not take a call back. Calls do not block the calling thread for longer than it takes to hand them over.
package protocol Registry: AnyObject, Sendable {
    /// What was noticed since it was opened: a damaged database set aside, downloads rebuilt. Damage may show at any
    /// later call: the call goes on with the new database, and there is one notice more.
    var notices: [String] { get }

    /// Adds downloads at the end of their priority, in order. One whose `identity` is there already is not added.
    func add(_ downloads: [RegisteredDownload]) async throws(TowlineError) -> [RegistryAddition]

    /// The downloads of those names, in that order and from one state of the list, without those that are not there.
    func downloads(_ ids: [DownloadID]) async throws(TowlineError) -> [RegisteredDownload]

    /// The downloads whose names begin or end so, at most `limit` of them.
    func names(matching short: ShortDownloadID, limit: Int) async throws(TowlineError) -> [DownloadID]

    /// One page of the list.
    func page(_ query: RegistryQuery) async throws(TowlineError) -> RegistryPage

    /// Makes changes, with what they write into the timelines.
    ///
    /// - Returns: the outcome of each change, in the same order.
    @discardableResult
    func apply(_ changes: [RegistryChange]) async throws(TowlineError) -> [RegistryOutcome]

    /// Puts a download before another of the same priority, or at the end. One of another priority is `unusableOption`; if
    /// either is not there, nothing happens.
    func move(_ id: DownloadID, before: DownloadID?) async throws(TowlineError)

    /// Removes downloads and their timelines, so that nothing of them is left in any file.
    ///
    /// - Parameter state: a download in another state stays; `nil` removes in every state.
    /// - Returns: the outcome of each removal, in the same order.
    @discardableResult
    func remove(_ ids: [DownloadID], onlyFrom state: RegisteredState?) async throws(TowlineError) -> [RegistryOutcome]

    /// The first queued downloads in the order of priority and place, without those of blocked hosts and groups.
    func nextQueued(limit: Int, blockedHosts: Set<String>, blockedGroups: Set<String>) async throws(TowlineError)
        -> [RegisteredDownload]

    /// Makes queued downloads active, so that their transfers may start. No two callers get the same download.
    ///
    /// - Returns: those that were queued, as they are now.
    func claim(_ ids: [DownloadID]) async throws(TowlineError) -> [RegisteredDownload]

    /// Every download in that state becomes one in the other, or only those of the group; tells how many did.
    func changeAll(from states: Set<RegisteredState>, to state: RegisteredState, group: String?)
        async throws(TowlineError) -> Int

    /// What happened to a download, oldest first, after the entry of that number.
    func timeline(of id: DownloadID, after number: Int64, limit: Int) async throws(TowlineError) -> [TimelineEntry]

    /// How many there are in each state, and their bytes.
    func totals() async throws(TowlineError) -> RegistryTotals

    /// Values by name: settings, limits of groups. `nil` removes one.
    func setValue(_ value: String?, for name: String) async throws(TowlineError)

    /// All values whose names begin so.
    func values(prefix: String) async throws(TowlineError) -> [String: String]

    /// What is known of hosts, by origin, as text of the caller's own.
    func hostKnowledge() async throws(TowlineError) -> [String: String]

    /// Remembers something of a host; the least recently written ones beyond 10,000 are forgotten.
    func setHostKnowledge(_ knowledge: String, for origin: String) async throws(TowlineError)

    /// Lets go of everything; calls that come later throw.
    func close() async
}

extension Registry {
    /// The download of that name, if there is one.
    package func download(_ id: DownloadID) async throws(TowlineError) -> RegisteredDownload? {
        try await downloads([id]).first
    }

    /// Removes downloads in every state.
    package func remove(_ ids: [DownloadID]) async throws(TowlineError) { try await remove(ids, onlyFrom: nil) }
}

/// A download as the registry keeps it.
package struct RegisteredDownload: Hashable, Sendable {
    /// Its name.
    package var id: DownloadID
    /// The URL as given, with its secrets.
    package var source: String
    /// `scheme://host:port` of the URL.
    package var host: String
    /// Where to: the directory.
    package var directory: String
    /// The final name: as asked for, or once it is known.
    package var name: String?
    /// The same for two requests of the same URL to the same place, for ever: what was asked, not what came of it.
    package var identity: String
    /// Options in a form of the caller's own.
    package var options: [UInt8]
    /// What the caller wants back unchanged.
    package var metadata: [String: String]
    /// The group it is in.
    package var group: String?
    /// Higher goes first.
    package var priority: Int
    /// Where it stands.
    package var state: RegisteredState
    /// Why it waits or failed, in words and as a code.
    package var reason: String?
    /// `TowlineError.Code` of a failure, or why it waits.
    package var reasonCode: String?
    /// HTTP status of a failure.
    package var status: Int?
    /// Until when it waits, in milliseconds since 1970.
    package var waitUntil: Int64?
    /// Size of the whole, once known.
    package var completeLength: Int64?
    /// Bytes that were there when last heard of.
    package var heldBytes: Int64
    /// Milliseconds since 1970 of when it was added.
    package var addedAt: Int64
    /// And of its end.
    package var endedAt: Int64?

    /// A download that was just asked for.
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

/// What became of an addition.
package enum RegistryAddition: Hashable, Sendable {
    /// It is new.
    case added
    /// The same was there already, under this name.
    case existing(DownloadID)
}

/// The outcome of a change.
package enum RegistryOutcome: Hashable, Sendable {
    /// The change is durable.
    case applied
    /// The download is not in the state that the change requires (`RegistryChange.onlyFrom`). Nothing changed.
    case otherState
    /// The download is not in the list.
    case missing
}

/// Fields of one download that change together. A `nil` leaves a field alone; a value within clears or sets it.
package struct RegistryChange: Hashable, Sendable {
    /// Which.
    package var id: DownloadID
    /// Its state, with the reason that belongs to it: setting the state replaces reason, code, status and wait.
    package var state: State?
    /// The directory, after the file was moved. The identity stays.
    package var directory: String?
    /// The final name.
    package var name: String?
    /// The URL, after the caller renewed it. The identity stays.
    package var source: String?
    /// Its origin.
    package var host: String?
    /// The identity, after secrets were removed from it.
    package var identity: String?
    /// Options.
    package var options: [UInt8]?
    /// The caller's own.
    package var metadata: [String: String]?
    /// The group.
    package var group: String??
    /// The priority; the download goes to the end of it.
    package var priority: Int?
    /// Size of the whole.
    package var completeLength: Int64??
    /// Bytes that are there.
    package var heldBytes: Int64?
    /// What the timeline shall say.
    package var entries: [TimelineEntry]
    /// The state on which the change was decided: a download in another state is not changed.
    package var onlyFrom: RegisteredState?

    /// A state and what belongs to it.
    package struct State: Hashable, Sendable {
        /// The state.
        package var state: RegisteredState
        /// Why, in words.
        package var reason: String?
        /// Why, as a code.
        package var reasonCode: String?
        /// HTTP status.
        package var status: Int?
        /// Until when, in milliseconds since 1970.
        package var waitUntil: Int64?
        /// Milliseconds since 1970, for states that are an end.
        package var endedAt: Int64?

        /// Makes one.
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

    /// A change of nothing yet.
    package init(_ id: DownloadID, state: State? = nil, entries: [TimelineEntry] = []) {
        self.id = id
        self.state = state
        self.entries = entries
    }
}

/// Something that happened to a download, and why.
package struct TimelineEntry: Hashable, Sendable {
    /// Its number, ascending within the registry; 0 before it is kept.
    package var number: Int64
    /// Milliseconds since 1970.
    package var time: Int64
    /// A stable name for programs, such as `restarted`.
    package var kind: String
    /// One sentence, without secrets.
    package var message: String

    /// Makes one.
    package init(number: Int64 = 0, time: Int64, kind: String, message: String) {
        self.number = number
        self.time = time
        self.kind = kind
        self.message = message
    }
}

/// Which downloads, in which order, from where.
package struct RegistryQuery: Hashable, Sendable {
    /// What they are ordered by; ties go by when they were put into the registry.
    package enum Order: String, Hashable, Sendable, CaseIterable {
        /// Priority and place: the order in which they run.
        case queue
        /// When they were added.
        case added
        /// Their final name.
        case name
        /// Their size.
        case size
        /// Their state.
        case state
        /// When they ended.
        case ended
    }

    /// The order.
    package var order = Order.queue
    /// The other way round.
    package var descending = false
    /// Only those in these states; empty: all.
    package var states: Set<RegisteredState> = []
    /// Only those of the group.
    package var group: String?
    /// Only those with this in the name or the URL without its secrets, upper and lower case alike.
    package var text: String?
    /// After the last one of the page before; any other order or filter makes it meaningless.
    package var cursor: RegistryCursor?
    /// How many at most.
    package var limit = 100

    /// All of them.
    package init() {}
}

/// Where a page ended. Opaque: only the registry that gave it reads it.
package struct RegistryCursor: Hashable, Sendable {
    /// What the registry makes of it.
    package let text: String

    /// Makes one.
    package init(text: String) { self.text = text }
}

/// A page of the list.
package struct RegistryPage: Hashable, Sendable {
    /// The downloads.
    package var downloads: [RegisteredDownload]
    /// Where the next page begins; `nil` at the end.
    package var next: RegistryCursor?

    /// Makes one.
    package init(downloads: [RegisteredDownload], next: RegistryCursor?) {
        self.downloads = downloads
        self.next = next
    }
}

/// Sums over the list.
package struct RegistryTotals: Hashable, Sendable {
    /// How many downloads there are in each state.
    package var counts: [RegisteredState: Int] = [:]
    /// Bytes that are there, of all.
    package var heldBytes: Int64 = 0
    /// Bytes in all, of those whose length is known.
    package var completeLength: Int64 = 0

    /// Nothing.
    package init() {}
}
