internal import Logging
import Synchronization
import TowlineCore
import TowlineEngine

/// A download that a transfer is at. The transfer tells it things from any thread; the center collects them.
final class LiveDownload: TransferObserver {
    /// What the transfer is to end for.
    enum Intent: Equatable, Sendable {
        /// By itself.
        case none
        /// Make room for others while the server wants to be left alone, for so long and for that reason.
        case serverWait(Duration, String)
        case pause
        case cancel
        /// Begin again with what was changed.
        case restart
        case remove
        /// The downloader closes: everything stays as it is.
        case close
    }

    private struct Fields {
        var record: RegisteredDownload
        var request: DownloadRequest
        var transfer = TransferSnapshot()
        var isDirty = false
        var entries: [TimelineEntry] = []
        /// What the list should have got and could not be told.
        var untold: RegistryChange?
        var intent = Intent.none
        var runner: TransferRunner?
        /// Called once, when a command ends the transfer.
        var ending: (@Sendable () -> Void)?
        var isOver = false
        var endState: RegisteredState?
    }

    let id: DownloadID
    /// What it counts against.
    var share: Admission.Share { fields.withLock { Admission.Share($0.record) } }
    private let hub: SnapshotHub
    private let logger: Logger?
    private let fields: Mutex<Fields>

    init(_ record: RegisteredDownload, _ request: DownloadRequest, hub: SnapshotHub, logger: Logger?) {
        id = record.id
        self.logger = logger
        self.hub = hub
        var transfer = TransferSnapshot()
        transfer.state = .connecting
        transfer.heldBytes = record.heldBytes
        transfer.completeLength = record.completeLength
        fields = Mutex(Fields(record: record, request: request, transfer: transfer))
    }

    // MARK: What the transfer tells

    func traced(_ line: String) { logger?.debug("\(line)", metadata: ["download": "\(id)"]) }

    func progressed(_ snapshot: TransferSnapshot) {
        if let wait = Self.longWait(snapshot) { makeRoom(wait) }
        let changed = fields.withLock { fields -> DownloadSnapshot? in
            guard !fields.isOver else { return nil }
            var snapshot = snapshot
            // A run that just began knows less than the list does; a bar must not jump back.
            if snapshot.completeLength == nil { snapshot.completeLength = fields.record.completeLength }
            if snapshot.state == .queued { snapshot.state = .connecting }
            if snapshot.state == .connecting, snapshot.heldBytes == 0 { snapshot.heldBytes = fields.record.heldBytes }
            // An ending is told by the center, with its reason, once it is in the registry.
            if Self.isEnd(snapshot.state) { snapshot.state = fields.transfer.state }
            let isNews = snapshot.state != fields.transfer.state || snapshot.name != fields.transfer.name
            fields.transfer = snapshot
            guard isNews else {
                fields.isDirty = true
                return nil
            }
            fields.isDirty = false
            return Self.snapshot(fields)
        }
        if let changed { hub.publish(changed) }
    }

    /// A transfer that waits for its server longer than this holds a place that others could use.
    private static let longestServerWait = Duration.seconds(10)

    private static func longWait(_ snapshot: TransferSnapshot) -> LiveDownload.Intent? {
        guard snapshot.state == .waiting(.server), let wait = snapshot.wait, wait.remaining > longestServerWait else {
            return nil
        }
        return .serverWait(wait.remaining, wait.reason)
    }

    /// Ends the transfer for a wait, if nothing else was asked. Where tries are limited it goes on: it counts them.
    private func makeRoom(_ wait: Intent) {
        let runner = fields.withLock { fields -> TransferRunner? in
            guard case .none = fields.intent, fields.request.maximumTries == nil, !fields.isOver else { return nil }
            fields.intent = wait
            return fields.runner
        }
        runner?.stop(wait.purpose)
    }

    private static func isEnd(_ state: DownloadState) -> Bool {
        [.finished, .failed, .paused, .cancelled].contains(state)
    }

    func noticed(_ notice: TransferNotice) {
        let entry = TimelineEntry(time: WallClock.milliseconds, kind: notice.kind.rawValue, message: notice.message)
        fields.withLock { $0.entries.append(entry) }
        hub.publish(entry, of: id)
    }

    // MARK: What the center asks

    /// Where it stands now.
    var snapshot: DownloadSnapshot { fields.withLock { Self.snapshot($0) } }

    /// The same, if something changed since it was last told.
    func takeDirtySnapshot() -> DownloadSnapshot? {
        fields.withLock { fields in
            guard fields.isDirty, !fields.isOver else { return nil }
            fields.isDirty = false
            return Self.snapshot(fields)
        }
    }

    /// The bytes that are there, and those there are in all, less what the list knows of them.
    var newBytes: (held: Int64, complete: Int64) {
        fields.withLock { fields in
            guard !fields.isOver else { return (0, 0) }
            let complete = (fields.transfer.completeLength ?? 0) - (fields.record.completeLength ?? 0)
            return (fields.transfer.heldBytes - fields.record.heldBytes, complete)
        }
    }

    /// What the list should know and does not yet: the name and the length as soon as they are known, notes, and
    /// with `progress` how much is there.
    func takeChange(progress: Bool) -> RegistryChange? {
        fields.withLock { fields in
            var change = fields.untold ?? RegistryChange(id)
            fields.untold = nil
            let transfer = fields.transfer
            if let name = transfer.name, name != fields.record.name {
                fields.record.name = name
                change.name = name
            }
            if let length = transfer.completeLength, length != fields.record.completeLength {
                fields.record.completeLength = length
                change.completeLength = .some(length)
            }
            if progress, transfer.heldBytes != fields.record.heldBytes {
                fields.record.heldBytes = transfer.heldBytes
                change.heldBytes = transfer.heldBytes
            }
            change.entries += fields.entries
            fields.entries = []
            return change == RegistryChange(id) ? nil : change
        }
    }

    /// Takes a change back that could not be written down: it comes with the next one. Of the notes, the newest count.
    func putBack(_ change: RegistryChange) {
        fields.withLock { fields in
            var change = change
            change.entries = change.entries.suffix(Self.mostNotes)
            fields.untold = change
        }
    }

    private static let mostNotes = 100

    /// Gives it a runner, unless it is to end before it began.
    func begin(_ runner: TransferRunner) {
        let isWanted = fields.withLock { fields -> Bool in
            fields.runner = runner
            if case .none = fields.intent { return true }
            return false
        }
        if !isWanted { runner.stop(intent.purpose) }
    }

    /// Ends the transfer soon. What ends a download for good is not taken back by what does less.
    ///
    /// - Returns: the intent given.
    @discardableResult
    func end(_ intent: Intent) -> Intent {
        let (runner, ending) = fields.withLock { fields in
            if intent.rank >= fields.intent.rank { fields.intent = intent }
            return (fields.runner, fields.ending.take())
        }
        runner?.stop(intent.purpose)
        ending?()
        return intent
    }

    /// Calls `body` when a command ends the transfer, or now if one has; `nil`: no longer.
    func whenEnding(_ body: (@Sendable () -> Void)?) {
        let isEnding = fields.withLock { fields in
            fields.ending = fields.intent.isCommand ? nil : body
            return fields.intent.isCommand
        }
        if isEnding { body?() }
    }

    /// Takes a pause back that has not happened yet: the transfer ends and begins again.
    ///
    /// - Returns: whether there was one.
    func resume() -> Bool {
        fields.withLock { fields in
            guard fields.intent == .pause else { return false }
            fields.intent = .restart
            return true
        }
    }

    /// What it is to end for.
    var intent: Intent { fields.withLock { $0.intent } }

    /// Whether it waits for something, or is about to end in order to.
    var isWaiting: Bool {
        fields.withLock { fields in
            if case .serverWait = fields.intent { return true }
            if case .waiting = fields.transfer.state { return true }
            return false
        }
    }

    /// The request as it is now.
    var request: DownloadRequest { fields.withLock { $0.request } }

    /// The list's entry as it was last known.
    var record: RegisteredDownload { fields.withLock { $0.record } }

    /// Bytes that are there, and those that came in this run.
    var progress: (held: Int64, received: Int64) {
        fields.withLock { ($0.transfer.heldBytes, $0.transfer.receivedBytes) }
    }

    /// The runner, while there is one.
    var runner: TransferRunner? { fields.withLock { $0.runner } }

    /// Takes over what was changed while it runs.
    func update(_ body: @Sendable (inout RegisteredDownload, inout DownloadRequest) -> Void) {
        fields.withLock { fields in
            body(&fields.record, &fields.request)
            fields.isDirty = true
        }
    }

    /// Nothing that the transfer says from here on is told.
    ///
    /// - Parameter state: the state in which the download is left; `nil` leaves it as it is.
    func close(_ state: RegisteredState?) {
        fields.withLock { fields in
            fields.isOver = true
            fields.endState = state
        }
    }

    /// The state in which the transfer left the download.
    var endState: RegisteredState? { fields.withLock { $0.endState } }

    private static func snapshot(_ fields: Fields) -> DownloadSnapshot {
        DownloadSnapshot(fields.record, fields.transfer)
    }
}

extension LiveDownload.Intent {
    /// What a transfer that ends for it is told.
    var purpose: StopPurpose {
        switch self {
        case .close: .close
        case .none, .serverWait, .pause: .pause
        case .restart, .cancel, .remove: .discard
        }
    }

    /// Returns whether a command is the reason.
    var isCommand: Bool {
        switch self {
        case .none, .serverWait: false
        case .restart, .pause, .close, .cancel, .remove: true
        }
    }

    /// Returns whether a later command may replace it by its opposite.
    var isReversible: Bool { self == .pause || self == .restart }

    /// The state of a download whose transfer ends for it.
    var endState: RegisteredState? {
        switch self {
        case .none, .serverWait, .close: nil
        case .restart: .queued
        case .pause, .remove: .paused
        case .cancel: .cancelled
        }
    }

    /// How much is given up.
    var rank: Int {
        switch self {
        case .none: 0
        case .serverWait: 1
        case .restart: 2
        // A pause that was not answered yet is kept when the downloader closes.
        case .close: 3
        case .pause: 4
        case .cancel: 5
        case .remove: 6
        }
    }
}

extension Admission.Share {
    /// What a download of the list counts against.
    init(_ record: RegisteredDownload) { self.init(host: record.host, group: record.group) }
}
