import TowlineCore
import TowlineWire

/// An input of `tow watch`.
enum WatchEvent: Sendable {
    /// A key was pressed.
    case key(WatchKey)
    /// The size of the window, in columns and rows.
    case size(width: Int, height: Int)
    /// Some time has passed. Sent about once a second.
    case tick
    /// The response to `WatchAction.ask`.
    case page(Result<Wire.Page, WatchFailure>)
    /// The response to `WatchAction.act`, or to `.remove` (then the download is `nil`).
    case done(Result<Wire.Download?, WatchFailure>)
}

/// The reason why a request to towd failed.
enum WatchFailure: Error, Hashable, Sendable {
    /// No process listens on the socket.
    case notRunning
    /// towd did not respond in time, or the exchange failed. Contains the message.
    case silent(String)
    /// towd refused the request, or its response cannot be read. Contains the reason.
    case refused(String)
}

/// An output of `tow watch`.
enum WatchAction: Hashable, Sendable {
    /// Requests a page of at most `limit` downloads. There is one such request at a time.
    case ask(WatchPlace, limit: Int)
    /// Pauses, resumes, cancels or retries a download.
    case act(String, id: String)
    /// Removes a download from the list.
    case remove(id: String, files: Bool)
    /// Ends `tow watch` with this exit status.
    case leave(Int32)
    /// Restores the terminal and stops the process until it is continued.
    case suspend
    /// Redraws the whole screen, regardless of its current content.
    case redraw
}

/// The state of `tow watch` and its transitions: events in, actions out. Uses neither the terminal nor the service.
struct WatchModel: Sendable {
    /// The state of the connection to towd.
    enum Link: Hashable, Sendable {
        /// No response has arrived yet.
        case unknown
        /// towd responds.
        case up
        /// No process listens on the socket.
        case down
        /// towd does not respond. Contains the message for the user.
        case silent(String)
    }

    /// An action that needs confirmation.
    struct Question: Hashable, Sendable {
        enum Deed: Hashable, Sendable { case cancel, remove }
        let deed: Deed
        /// The download that was selected when the question was asked.
        let id: String
        let name: String
    }

    /// A message that is shown for some seconds.
    struct Notice: Hashable, Sendable {
        let text: String
        let isBad: Bool
        let until: Duration
    }

    private(set) var width: Int
    private(set) var height: Int
    private(set) var link = Link.unknown
    private(set) var downloads: [Wire.Download] = []
    private(set) var totals: Wire.Totals?
    private(set) var question: Question?
    private(set) var notice: Notice?
    /// The index of the selected download on the page.
    private(set) var index = 0
    private var place = WatchPlace.beginning
    /// The cursor of the page after this one, in the direction of `place`. `nil` on the last page.
    private var next: String?
    /// The row to select when the requested page arrives. Until then, `downloads` holds the previous page.
    private var wish: Wish?
    /// The request under way: its page, its limit and its start time.
    private var asked: (place: WatchPlace, limit: Int, at: Duration)?
    /// `true` if a download was changed after that request, so that the response may be outdated.
    private var isOutdated = false

    private enum Wish: Hashable, Sendable { case first, last, index(Int) }

    private static let noticeTime = Duration.seconds(5)
    private static let patience = Duration.seconds(3)

    init(width: Int, height: Int) {
        self.width = width
        self.height = height
    }

    /// The selected download, which keys act on. `nil` if the page is empty.
    var selected: Wire.Download? { downloads.indices.contains(index) ? downloads[index] : nil }
    /// Returns whether the list continues above the page.
    var hasAbove: Bool { place.above(next: next) != nil }
    /// Returns whether the list continues below the page.
    var hasBelow: Bool { place.below(next: next) != nil }
    /// The division of the window.
    var layout: WatchLayout { WatchLayout(height: height) }

    /// Updates the state and returns the actions to perform, in order. `now` is the time since `tow watch` started.
    mutating func handle(_ event: WatchEvent, now: Duration) -> [WatchAction] {
        if let notice, now >= notice.until { self.notice = nil }
        switch event {
        case .key(let key):
            return question == nil ? press(key, now) : answer(key, now)
        case .size(let width, let height):
            (self.width, self.height) = (width, height)
            return ask(now) + [.redraw]
        case .tick:
            if let asked, now - asked.at >= Self.patience, link == .up || link == .unknown {
                link = .silent("no response from towd yet; still waiting")
            }
            return ask(now)
        case .page(let result): return received(result, now)
        case .done(let result): return done(result, now)
        }
    }

    // MARK: Keys

    private mutating func press(_ key: WatchKey, _ now: Duration) -> [WatchAction] {
        switch key {
        case .letter("q"), .letter("Q"): return [.leave(ExitStatus.success.rawValue)]
        case .interrupt: return [.leave(130)]
        case .suspend: return [.suspend]
        case .redraw: return ask(now) + [.redraw]
        case .up, .letter("k"): return move(by: -1, now)
        case .down, .letter("j"): return move(by: 1, now)
        case .pageUp: return turn(to: place.above(next: next), wish: .index(index), orSelect: 0, now)
        case .pageDown:
            return turn(to: place.below(next: next), wish: .index(index), orSelect: downloads.count - 1, now)
        case .home, .letter("g"): return turn(to: .beginning, wish: .first, orSelect: 0, now)
        case .end, .letter("G"): return turn(to: .end, wish: .last, orSelect: downloads.count - 1, now)
        case .letter("p"), .letter(" "): return pauseOrResume(now)
        case .letter("r"): return retry(now)
        case .letter("c"): return askWhetherToCancel(now)
        case .letter("x"):
            guard let selected = reachable(now) else { return [] }
            question = Question(deed: .remove, id: selected.id, name: WatchLine.name(selected))
            return []
        default: return []
        }
    }

    private mutating func move(by step: Int, _ now: Duration) -> [WatchAction] {
        let wanted = index + step
        if downloads.indices.contains(wanted) {
            if wish == nil { index = wanted }
            return []
        }
        return step < 0
            ? turn(to: place.above(next: next), wish: .last, orSelect: index, now)
            : turn(to: place.below(next: next), wish: .first, orSelect: index, now)
    }

    /// Requests another page. If `other` is `nil`, selects a row of the current page.
    private mutating func turn(
        to other: WatchPlace?, wish: Wish, orSelect row: Int, _ now: Duration
    ) -> [WatchAction] {
        guard let other else {
            if self.wish == nil { index = min(max(0, row), max(0, downloads.count - 1)) }
            return []
        }
        // `next` belongs to the visible page and does not apply to the requested page.
        if self.wish != nil, other != .beginning, other != .end { return [] }
        place = other
        self.wish = wish
        return ask(now)
    }

    /// Returns the selected download, or `nil` with a notice if towd does not respond.
    private mutating func reachable(_ now: Duration) -> Wire.Download? {
        guard link == .up else {
            say("towd does not respond, so the download is unchanged. Try again later", isBad: true, now)
            return nil
        }
        return selected
    }

    private mutating func pauseOrResume(_ now: Duration) -> [WatchAction] {
        guard let selected = reachable(now) else { return [] }
        switch selected.state {
        case .queued, .connecting, .downloading, .verifying, .publishing, .waiting:
            return [.act("pause", id: selected.id)]
        case .paused, .failed: return [.act("resume", id: selected.id)]
        case .finished, .followUpFailed:
            say("the download is finished; there is nothing to pause or resume", isBad: false, now)
        case .cancelled: say("the download was cancelled; press r to start it again", isBad: false, now)
        }
        return []
    }

    private mutating func retry(_ now: Duration) -> [WatchAction] {
        guard let selected = reachable(now) else { return [] }
        switch selected.state {
        case .failed, .cancelled, .followUpFailed: return [.act("retry", id: selected.id)]
        case .waiting, .paused: return [.act("resume", id: selected.id)]
        case .finished: say("the download is finished; there is nothing to retry", isBad: false, now)
        case .queued, .connecting, .downloading, .verifying, .publishing:
            say("the download is already queued or running; there is nothing to retry", isBad: false, now)
        }
        return []
    }

    private mutating func askWhetherToCancel(_ now: Duration) -> [WatchAction] {
        guard let selected = reachable(now) else { return [] }
        switch selected.state {
        case .finished, .followUpFailed:
            say("the download is already finished; press x to remove it from the list", isBad: false, now)
        case .cancelled: say("the download is already cancelled; press r to start it again", isBad: false, now)
        default:
            question = Question(deed: .cancel, id: selected.id, name: WatchLine.name(selected))
        }
        return []
    }

    private mutating func answer(_ key: WatchKey, _ now: Duration) -> [WatchAction] {
        guard let question else { return [] }
        if key == .redraw { return ask(now) + [.redraw] }
        self.question = nil
        switch (question.deed, key) {
        case (_, .interrupt): return [.leave(130)]
        case (.cancel, .letter("y")): return [.act("cancel", id: question.id)]
        case (.remove, .letter("y")): return [.remove(id: question.id, files: false)]
        case (.remove, .letter("f")): return [.remove(id: question.id, files: true)]
        default: return []
        }
    }

    // MARK: Answers

    private mutating func ask(_ now: Duration) -> [WatchAction] {
        guard asked == nil else { return [] }
        isOutdated = false
        let limit = layout.rows
        asked = (place, limit, now)
        return [.ask(place, limit: limit)]
    }

    private mutating func received(_ result: Result<Wire.Page, WatchFailure>, _ now: Duration) -> [WatchAction] {
        let question = asked
        asked = nil
        switch result {
        case .failure(let failure):
            lost(failure, now)
            return []
        case .success(let page):
            if link == .down { say("towd is running again", isBad: false, now) }
            link = .up
            totals = page.totals
            // The requested page or its limit changed after the request was sent, or a download was changed.
            guard let question, question.place == place, !isOutdated else { return ask(now) }
            show(page)
            if page.downloads.isEmpty, let back = place.back {
                (place, wish) = (back, .last)
                return ask(now)
            }
            if place.isFromEnd, page.next == nil {
                // This page contains the start of the list. Request it from the start, which can fill the window.
                (place, wish) = (.beginning, .index(index))
                return ask(now)
            }
            return question.limit == layout.rows ? [] : ask(now)
        }
    }

    private mutating func show(_ page: Wire.Page) {
        let id = selected?.id
        downloads = place.isFromEnd ? page.downloads.reversed() : page.downloads
        next = page.next
        let last = max(0, downloads.count - 1)
        switch wish {
        case .first: index = 0
        case .last: index = last
        case .index(let wanted): index = min(wanted, last)
        // The same download, at any index. If it is gone, the row at the same index.
        case nil: index = downloads.firstIndex { $0.id == id } ?? min(index, last)
        }
        wish = nil
    }

    private mutating func lost(_ failure: WatchFailure, _ now: Duration) {
        switch failure {
        case .notRunning: link = .down
        case .silent(let reason): link = .silent(reason)
        case .refused(let reason):
            // The cursor of the page is no longer valid.
            link = .up
            say(reason, isBad: true, now)
            (place, wish) = (.beginning, .first)
        }
    }

    private mutating func done(_ result: Result<Wire.Download?, WatchFailure>, _ now: Duration) -> [WatchAction] {
        switch result {
        case .success(let download):
            if let download, let row = downloads.firstIndex(where: { $0.id == download.id }) {
                downloads[row] = download
            }
            isOutdated = true
        case .failure(.notRunning): link = .down
        case .failure(.silent(let reason)), .failure(.refused(let reason)): say(reason, isBad: true, now)
        }
        return ask(now)
    }

    private mutating func say(_ text: String, isBad: Bool, _ now: Duration) {
        notice = Notice(text: text, isBad: isBad, until: now + Self.noticeTime)
    }
}
