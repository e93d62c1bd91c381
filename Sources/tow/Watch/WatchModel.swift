import TowlineCore
import TowlineWire

/// Something that happens to `tow watch`.
enum WatchEvent: Sendable {
    /// A key was pressed.
    case key(WatchKey)
    /// The window has so many columns and rows.
    case size(width: Int, height: Int)
    /// Some time has passed.
    case tick
    /// The page asked for, or why there is none.
    case page(Result<Wire.Page, WatchFailure>)
    /// What was done to a download; nothing is told of one that was removed.
    case done(Result<Wire.Download?, WatchFailure>)
}

/// Why there is no answer.
enum WatchFailure: Error, Hashable, Sendable {
    /// Nobody listens.
    case notRunning
    /// It listens, and did not answer in time or not in order.
    case silent(String)
    /// It does not do that, and says why.
    case refused(String)
}

/// Something that `tow watch` does.
enum WatchAction: Hashable, Sendable {
    /// Asks for that page, so many downloads of it. There is one such question at a time.
    case ask(WatchPlace, limit: Int)
    /// Pauses, resumes, cancels or retries.
    case act(String, id: String)
    /// Takes it off the list.
    case remove(id: String, files: Bool)
    /// Leaves with that exit status.
    case leave(Int32)
    /// Gives the terminal back until it is continued.
    case suspend
    /// Draws everything anew, whatever is on the terminal.
    case redraw
}

/// What `tow watch` knows, and what follows from what happens: events in, actions out. It touches neither the terminal
/// nor the service.
struct WatchModel: Sendable {
    /// How it stands with the service.
    enum Link: Hashable, Sendable {
        /// Not yet known.
        case unknown
        /// It answers.
        case up
        /// Nobody listens.
        case down
        /// It does not answer, and why.
        case silent(String)
    }

    /// Something that is done only after a yes.
    struct Question: Hashable, Sendable {
        enum Deed: Hashable, Sendable { case cancel, remove }
        let deed: Deed
        /// The download that was selected when it was asked.
        let id: String
        let name: String
    }

    /// A sentence that stands for some seconds.
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
    /// The place of the selected one on the page.
    private(set) var index = 0
    private var place = WatchPlace.beginning
    /// Where the page after this one begins, in the direction of `place`.
    private var next: String?
    /// Where to select once the page is there; until then `downloads` are of the page before.
    private var wish: Wish?
    /// When the question under way was asked, and for which page.
    private var asked: (place: WatchPlace, limit: Int, at: Duration)?
    /// Something was changed since then: the answer may be of before.
    private var isOutdated = false

    private enum Wish: Hashable, Sendable { case first, last, index(Int) }

    private static let noticeTime = Duration.seconds(5)
    private static let patience = Duration.seconds(3)

    init(width: Int, height: Int) {
        self.width = width
        self.height = height
    }

    /// The download that keys are about.
    var selected: Wire.Download? { downloads.indices.contains(index) ? downloads[index] : nil }
    /// Whether the list goes on above the page.
    var hasAbove: Bool { place.above(next: next) != nil }
    /// Whether the list goes on below the page.
    var hasBelow: Bool { place.below(next: next) != nil }
    /// How the window is divided.
    var layout: WatchLayout { WatchLayout(height: height) }

    /// - Parameter now: time since the beginning.
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

    /// To another page, or where there is none to a row of this one.
    private mutating func turn(
        to other: WatchPlace?, wish: Wish, orSelect row: Int, _ now: Duration
    ) -> [WatchAction] {
        guard let other else {
            if self.wish == nil { index = min(max(0, row), max(0, downloads.count - 1)) }
            return []
        }
        // What is after the page in sight says nothing of the page that is on its way.
        if self.wish != nil, other != .beginning, other != .end { return [] }
        place = other
        self.wish = wish
        return ask(now)
    }

    /// The selected download, if the service is there to be asked.
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
        case .finished: say("the download is finished; there is nothing to pause or resume", isBad: false, now)
        case .cancelled: say("the download was cancelled; press r to start it again", isBad: false, now)
        }
        return []
    }

    private mutating func retry(_ now: Duration) -> [WatchAction] {
        guard let selected = reachable(now) else { return [] }
        switch selected.state {
        case .failed, .cancelled: return [.act("retry", id: selected.id)]
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
        case .finished: say("the download is already finished; press x to remove it from the list", isBad: false, now)
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
            // Meanwhile another page is wanted, or more of this one.
            guard let question, question.place == place, !isOutdated else { return ask(now) }
            show(page)
            if page.downloads.isEmpty, let back = place.back {
                (place, wish) = (back, .last)
                return ask(now)
            }
            if place.isFromEnd, page.next == nil {
                // The beginning is in sight: from there on there may be more to show.
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
        // The same download, wherever it is now; else what took its place.
        case nil: index = downloads.firstIndex { $0.id == id } ?? min(index, last)
        }
        wish = nil
    }

    private mutating func lost(_ failure: WatchFailure, _ now: Duration) {
        switch failure {
        case .notRunning: link = .down
        case .silent(let reason): link = .silent(reason)
        case .refused(let reason):
            // The page begins at something that is not there any more.
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
