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

    /// Returns the value of a parameter, or `nil` if the query does not contain the parameter.
    func text(_ name: String) throws -> String? {
        guard let text = values[name] else { return nil }
        guard !text.isEmpty, !text.hasControlCharacters else {
            throw HTTPError(
                .badRequest,
                message: "\(name): the value is empty or contains control characters. Send another value, or leave out"
                    + " the parameter")
        }
        return text
    }

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
        case "true": return true
        default: throw HTTPError(.badRequest, message: "\(name): invalid value, expected true or false")
        }
    }

    /// The parameters that `list` and `states` read.
    static let listParameters: Set<String> = [
        "order", "descending", "state", "group", "text", "cursor", "limit",
    ]

    func list() throws -> DownloadQuery {
        var query = DownloadQuery()
        if let order = try text("order") {
            guard let known = DownloadQuery.Order(rawValue: order) else {
                let names = DownloadQuery.Order.allCases.map(\.rawValue).joined(separator: ", ")
                throw HTTPError(.badRequest, message: "order: invalid value, expected one of \(names)")
            }
            query.order = known
        }
        query.descending = try flag("descending")
        query.filters = Set(try states().flatMap(\.filters))
        query.group = try text("group")
        query.text = try text("text")
        query.cursor = try text("cursor").map {
            // Accept a plus sign that the client did not escape.
            DownloadCursor(text: String($0.map { $0 == " " ? "+" : $0 }))
        }
        query.limit = Int(try integer("limit", in: 1...1000) ?? 100)
        return query
    }

    /// Returns the states of the filter `state`; empty for all states.
    func states() throws -> [ListedState] {
        guard let text = try text("state") else { return [] }
        return try text.split(separator: ",", omittingEmptySubsequences: false).map { word in
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

/// A state in the filter of the list: a state as the list shows it, or `active` for all states of a running transfer.
struct ListedState: Hashable {
    /// The stored states of the downloads. A running transfer is stored as `active`, and may show `waiting` between two
    /// attempts.
    let filters: Set<DownloadQuery.Filter>
    /// The states that the list shows; empty if the stored state decides.
    private let shown: Set<Wire.State>

    private static let activities: [Wire.State] = [.connecting, .downloading, .verifying, .publishing]

    static var names: [String] { DownloadQuery.Filter.allCases.map(\.rawValue) + activities.map(\.rawValue) }

    /// Returns `nil` for an unknown name.
    init?(_ name: String) {
        if let activity = Self.activities.first(where: { $0.rawValue == name }) {
            (filters, shown) = ([.active], [activity])
            return
        }
        guard let filter = DownloadQuery.Filter(rawValue: name) else { return nil }
        switch filter {
        case .active: (filters, shown) = ([.active], Set(Self.activities))
        case .waiting: (filters, shown) = ([.active, .waiting], [.waiting])
        case .failed: (filters, shown) = ([.failed, .followUpFailed], [])
        default: (filters, shown) = ([filter], [])
        }
    }

    /// `true` if the stored state does not decide, so that the downloads found need a check with `contains`.
    var needsCheck: Bool { !shown.isEmpty }

    /// Returns whether a download is shown in this state.
    func contains(_ download: Wire.Download) -> Bool {
        needsCheck ? shown.contains(download.state) : filters.contains { $0.rawValue == download.state.rawValue }
    }
}
