internal import GRDB
internal import TowlineCore
internal import TowlineEngine

/// The downloads that have a journal but no row in the database.
///
/// The identity cannot be compared: it lacks a name that the server gave, and contains secrets that no journal
/// contains. Two rows for one part file are worse than a missing row: removing the second download with its files
/// would remove the files of the first one.
struct Unlisted {
    private let downloads: [RegisteredDownload]

    init(_ downloads: [RegisteredDownload]) { self.downloads = downloads }

    /// A directory with a name or a URL, compared by bytes like the file system. Swift treats some different texts as
    /// equal.
    private struct Key: Hashable {
        let directory: [UInt8]
        let last: [UInt8]

        init(_ directory: String, _ last: String) {
            (self.directory, self.last) = (Array(directory.utf8), Array(last.utf8))
        }
    }

    /// Returns the downloads without a row. Reads each row once, and uses memory only for the downloads.
    func fetch(_ database: Database) throws -> [RegisteredDownload] {
        if downloads.isEmpty { return [] }
        var names: [Key: [Int]] = [:]
        var sources: [Key: [Int]] = [:]
        for (number, download) in downloads.enumerated() {
            if let name = download.name { names[Key(download.directory, name), default: []].append(number) }
            if let source = Self.source(download.source) {
                sources[Key(download.directory, source), default: []].append(number)
            }
        }
        var listed: Set<Int> = []
        let rows = try Row.fetchCursor(database, sql: "SELECT directory, name, source FROM downloads")
        while let row = try rows.next() {
            let reader = RowReader(row: row)
            let directory = try reader.text(0)
            if let name = try reader.optionalText(1) {
                listed.formUnion(names[Key(directory, name)] ?? [])
            } else if let source = Self.source(try reader.text(2)) {
                // The name of this download was still unknown.
                listed.formUnion(sources[Key(directory, source)] ?? [])
            }
        }
        return downloads.indices.filter { !listed.contains($0) }.map { downloads[$0] }
    }

    private static func source(_ text: String) -> String? { try? HTTPURL(parsing: text).withoutSecrets }
}
