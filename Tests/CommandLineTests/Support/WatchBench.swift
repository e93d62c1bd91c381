import TowlineCore
import TowlineWire

@testable import tow

/// A model of `tow watch` and a list of downloads that answers it like the service, without a terminal or a service.
struct WatchBench {
    var model: WatchModel
    /// The complete list.
    var list: [Wire.Download]
    var now = Duration.zero
    /// The number of pages requested, and the length of the longest.
    private(set) var asked = 0
    private(set) var longest = 0

    init(_ list: [Wire.Download], width: Int = 80, height: Int = 13) {
        self.list = list
        model = WatchModel(width: width, height: height)
    }

    static func downloads(_ count: Int, _ state: Wire.State = .downloading) -> [Wire.Download] {
        (0..<count).map { download("\($0)", state) }
    }

    static func download(_ id: String, _ state: Wire.State = .downloading) -> Wire.Download {
        var download = Wire.Download(
            id: id, url: "http://a.test/f\(id)", directory: "/d", state: state, addedAt: 0)
        download.name = "f\(id)"
        download.completeLength = 1000
        download.heldBytes = 500
        return download
    }

    /// Handles the event, answers every request for pages, and returns the remaining actions.
    @discardableResult
    mutating func feed(_ event: WatchEvent) -> [WatchAction] {
        var others: [WatchAction] = []
        var waiting = model.handle(event, now: now)
        while !waiting.isEmpty {
            let action = waiting.removeFirst()
            guard case .ask(let place, let limit) = action else {
                others.append(action)
                continue
            }
            waiting += model.handle(.page(.success(page(place, limit))), now: now)
        }
        return others
    }

    @discardableResult
    mutating func press(_ keys: WatchKey...) -> [WatchAction] {
        keys.flatMap { feed(.key($0)) }
    }

    /// The visible downloads, and the selected one.
    var shown: [String] { model.downloads.map(\.id) }
    var selected: String? { model.selected?.id }

    /// Returns a page as the service makes it: a cursor is the name of the last download before the page.
    mutating func page(_ place: WatchPlace, _ limit: Int) -> Wire.Page {
        asked += 1
        longest = max(longest, limit)
        var rest = (place.isFromEnd ? list.reversed() : list)[...]
        if let cursor = place.cursor {
            rest = rest.drop { $0.id != cursor }.dropFirst()
        }
        let downloads = Array(rest.prefix(limit))
        return Wire.Page(
            downloads: downloads, next: rest.count > limit ? downloads.last?.id : nil,
            totals: Wire.Totals(
                counts: ["active": list.count], heldBytes: 0, completeLength: 0, rate: 2048, running: list.count))
    }
}
