internal import Foundation
internal import GRDB
internal import TowlineCore
internal import TowlineEngine

/// A `DownloadQuery` as SQL. A page continues after the keys of the last row, not after a count: the thousandth page
/// costs as much as the first, and added or removed rows do not shift the following pages.
struct PageQuery {
    let sql: String
    let arguments: StatementArguments
    private let query: DownloadQuery

    /// The maximum number of rows to sort if no index has both the filter and the order.
    static let sortable = 2_000

    init(_ query: DownloadQuery, rare: Rare?) throws(TowlineError) {
        self.query = query
        var conditions: [String] = []
        var arguments = StatementArguments()
        if let cursor = query.cursor {
            let keys = try PageQuery.keys(cursor, for: query)
            let columns = query.order.columns.joined(separator: ", ")
            let marks = keys.map { _ in "?" }.joined(separator: ", ")
            conditions.append("(\(columns)) \(query.descending ? "<" : ">") (\(marks))")
            arguments += StatementArguments(keys)
        }
        if !query.filters.isEmpty {
            let states = query.filters.map { String($0.number) }.sorted().joined(separator: ", ")
            conditions.append("state IN (\(states))")
        }
        if let group = query.group {
            conditions.append("\"group\" = ?")
            arguments += [group]
        }
        for word in (query.text ?? "").lowercased().split(whereSeparator: \.isWhitespace) {
            let (condition, forms) = PageQuery.contains(String(word))
            conditions.append(condition)
            arguments += StatementArguments(forms)
        }
        let direction = query.descending ? " DESC" : ""
        let condition = conditions.isEmpty ? "" : "WHERE " + conditions.joined(separator: " AND ")
        sql = """
            SELECT \(DownloadRow.columns) FROM downloads INDEXED BY \(PageQuery.index(query, rare)) \(condition) \
            ORDER BY \(query.order.columns.map { $0 + direction }.joined(separator: ", ")) LIMIT ?
            """
        self.arguments = arguments + [PageQuery.limit(query) + 1]
    }

    /// Letters with several lower-case forms, and the form that a search finds all of them by. `order.js` has the same.
    private static let letterForms = [("ß", "ss"), ("ς", "σ"), ("i\u{307}", "i")]

    /// Returns the condition that a name or URL contains a word in lower case, and the arguments of the condition.
    private static func contains(_ word: String) -> (condition: String, arguments: [String]) {
        let folded = letterForms.reduce(word) { text, form in
            text.replacingOccurrences(of: form.0, with: form.1, options: .literal)
        }
        // SQLite replaces only the letters that can matter, because it reads all rows.
        let needed = letterForms.filter { folded.contains($0.1) }
        func column(_ name: String) -> String {
            needed.reduce(name) { "replace(\($0), '\($1.0)', '\($1.1)')" }
        }
        let (name, url) = (column("name_key"), column("url_key"))
        // File names may be in either Unicode form; `url_key` has the composed form.
        let composed = folded.precomposedStringWithCanonicalMapping
        return (
            "(instr(\(name), ?) > 0 OR instr(\(name), ?) > 0 OR instr(\(url), ?) > 0)",
            [composed, folded.decomposedStringWithCanonicalMapping, composed]
        )
    }

    /// A filter that leaves so few rows that sorting them is faster than a scan of the order's index.
    enum Rare { case states, group }

    /// Returns the page of the given rows. One row more than the limit means that a next page exists.
    func page(_ rows: [DownloadRow]) -> RegistryPage {
        let limit = PageQuery.limit(query)
        let shown = rows.prefix(limit)
        let next = rows.count > limit ? shown.last.map { PageQuery.cursor($0, query) } : nil
        return RegistryPage(downloads: shown.map(\.download), next: next)
    }

    private static func limit(_ query: DownloadQuery) -> Int { min(max(query.limit, 1), 10_000) }

    private static func index(_ query: DownloadQuery, _ rare: Rare?) -> String {
        switch rare {
        case .states: return "downloads_state"
        case .group: return "downloads_group"
        case nil: break
        }
        switch query.order {
        case .queue where query.group != nil: return "downloads_group"
        case .queue where query.filters.count == 1: return "downloads_state"
        case .queue: return "downloads_queue"
        case .added: return "downloads_added"
        case .name: return "downloads_name"
        case .size: return "downloads_size"
        case .state: return "downloads_state"
        case .ended: return "downloads_ended"
        }
    }

    // MARK: Cursors: the order, the direction, and the keys of the last row, separated by dots.

    private static func cursor(_ row: DownloadRow, _ query: DownloadQuery) -> DownloadCursor {
        let download = row.download
        let rank = DownloadRow.rank(download.priority)
        let keys: [String] =
            switch query.order {
            case .queue: ["\(rank)", "\(row.place)"]
            case .added: ["\(download.addedAt)"]
            case .name: [Hexadecimal.encoded(DownloadRow.nameKey(download.name).utf8)]
            case .size: ["\(download.completeLength ?? -1)"]
            case .state: ["\(download.state.number)", "\(rank)", "\(row.place)"]
            case .ended: ["\(download.endedAt ?? -1)"]
            }
        return DownloadCursor(text: ([prefix(query)] + keys + ["\(row.number)"]).joined(separator: "."))
    }

    private static func prefix(_ query: DownloadQuery) -> String {
        query.order.rawValue + (query.descending ? "-" : "+")
    }

    private static func keys(_ cursor: DownloadCursor, for query: DownloadQuery) throws(TowlineError)
        -> [any DatabaseValueConvertible]
    {
        let words = cursor.text.split(separator: ".", omittingEmptySubsequences: false)
        guard let first = words.first, first == prefix(query), words.count == query.order.columns.count + 1 else {
            throw unusable
        }
        var keys: [any DatabaseValueConvertible] = []
        for (column, word) in zip(query.order.columns, words.dropFirst()) {
            if column == "name_key" {
                guard let bytes = Hexadecimal.decoded(word), let text = String(validating: bytes, as: UTF8.self)
                else { throw unusable }
                keys.append(text)
            } else {
                guard let number = Int64(word) else { throw unusable }
                keys.append(number)
            }
        }
        return keys
    }

    private static var unusable: TowlineError {
        TowlineError(
            .unusableOption,
            "the cursor is invalid or belongs to another sort order. Request the first page again, without a cursor")
    }
}

extension DownloadQuery.Order {
    /// The columns of the order; the last one makes the order total.
    var columns: [String] {
        switch self {
        case .queue: ["rank", "place", "number"]
        case .added: ["added_at", "number"]
        case .name: ["name_key", "number"]
        case .size: ["complete_length", "number"]
        case .state: ["state", "rank", "place", "number"]
        case .ended: ["ended_at", "number"]
        }
    }
}
