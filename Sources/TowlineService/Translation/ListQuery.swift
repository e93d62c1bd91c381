import HTTPTypes
import Hummingbird
internal import Towline

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
        for state in (text("state") ?? "").split(separator: ",") {
            guard let filter = DownloadQuery.Filter(rawValue: String(state)) else {
                let names = DownloadQuery.Filter.allCases.map(\.rawValue).joined(separator: ", ")
                throw HTTPError(
                    .badRequest, message: "state: invalid value, expected a comma-separated list of these: \(names)")
            }
            query.filters.insert(filter)
        }
        query.group = text("group")
        query.text = text("text")
        query.cursor = text("cursor").map {
            // Accept a plus sign that the client did not escape.
            DownloadCursor(text: String($0.map { $0 == " " ? "+" : $0 }))
        }
        query.limit = Int(try integer("limit", in: 1...1000) ?? 100)
        return query
    }
}
