import HTTPTypes
import Hummingbird
internal import Towline
import TowlineWire

/// Reads typed values from the query of a request.
struct QueryReader {
    private let values: [String: String]

    init(_ request: Request) {
        var values: [String: String] = [:]
        for (name, value) in request.uri.queryParameters { values[String(name)] = String(value) }
        self.values = values
    }

    func text(_ name: String) -> String? { values[name].flatMap { $0.isEmpty ? nil : $0 } }

    func integer(_ name: String, in range: ClosedRange<Int64>) throws -> Int64? {
        guard let text = values[name] else { return nil }
        guard let number = Int64(text), range.contains(number) else {
            throw HTTPError(
                .badRequest,
                message: "\(name): invalid value, expected a number from \(range.lowerBound) to \(range.upperBound)")
        }
        return number
    }

    func flag(_ name: String) throws -> Bool {
        switch values[name] {
        case nil, "false": return false
        case "true", "": return true
        default: throw HTTPError(.badRequest, message: "\(name): invalid value, expected true or false")
        }
    }

    /// The parameters that `list` and `states` read.
    static let listParameters: Set<String> = [
        "order", "descending", "state", "group", "text", "cursor", "limit",
    ]

    func list() throws -> DownloadQuery {
        var query = DownloadQuery()
        if let order = text("order") {
            guard let known = DownloadQuery.Order(rawValue: order) else {
                let names = DownloadQuery.Order.allCases.map(\.rawValue).joined(separator: ", ")
                throw HTTPError(.badRequest, message: "order: invalid value, expected one of \(names)")
            }
            query.order = known
        }
        query.descending = try flag("descending")
        query.filters = Set(try states().map(\.filter))
        query.group = text("group")
        query.text = text("text")
        query.cursor = text("cursor").map {
            // Accept a plus sign that the client did not escape.
            DownloadCursor(text: String($0.map { $0 == " " ? "+" : $0 }))
        }
        query.limit = Int(try integer("limit", in: 1...1000) ?? 100)
        return query
    }

    /// Returns the states of the filter `state`; empty for all states.
    func states() throws -> [ListedState] {
        try (text("state") ?? "").split(separator: ",").map { word in
            guard let state = ListedState(word.filter { !$0.isWhitespace }.lowercased()) else {
                throw HTTPError(
                    .badRequest,
                    message: "state: invalid value, expected a comma-separated list of these: "
                        + ListedState.names.joined(separator: ", "))
            }
            return state
        }
    }
}

/// A state in the filter of the list: a state as the list shows it, or `active` for all states of a running download.
struct ListedState: Hashable {
    /// The stored state of the downloads.
    let filter: DownloadQuery.Filter
    /// The state of a running download, which is not stored; `nil` for all downloads in the stored state.
    private let activity: Wire.State?

    private static let activities: [Wire.State] = [.connecting, .downloading, .verifying, .publishing]

    static var names: [String] { DownloadQuery.Filter.allCases.map(\.rawValue) + activities.map(\.rawValue) }

    /// Returns `nil` for an unknown name.
    init?(_ name: String) {
        activity = Self.activities.first { $0.rawValue == name }
        guard let filter = activity == nil ? DownloadQuery.Filter(rawValue: name) : .active else { return nil }
        self.filter = filter
    }

    /// `true` if the stored state does not decide, so that the downloads found need a check with `contains`.
    var needsCheck: Bool { activity != nil }

    /// Returns whether a download is shown in this state.
    func contains(_ download: Wire.Download) -> Bool {
        if let activity { return download.state == activity }
        return filter == .active
            ? Self.activities.contains(download.state) : filter.rawValue == download.state.rawValue
    }
}
