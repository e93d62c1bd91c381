internal import GRDB
internal import TowlineCore
internal import TowlineEngine

/// Which of the downloads that journals tell of are in no row.
///
/// Their identity does not tell: it is of what was asked, without the name that a server gave, and with secrets that no
/// journal has. Two entries of one part file would be worse than one too few: whoever removes the second with its files
/// removes the first one's.
struct Unlisted {
    private let downloads: [RegisteredDownload]

    init(_ downloads: [RegisteredDownload]) { self.downloads = downloads }

    /// Texts that are compared by their bytes, as the file system does: Swift takes some that only look alike for equal.
    private struct Place: Hashable {
        let directory: [UInt8]
        let last: [UInt8]

        init(_ directory: String, _ last: String) {
            (self.directory, self.last) = (Array(directory.utf8), Array(last.utf8))
        }
    }

    /// Looks at each row once, and keeps no more of them than there are downloads.
    func fetch(_ database: Database) throws -> [RegisteredDownload] {
        if downloads.isEmpty { return [] }
        var names: [Place: [Int]] = [:]
        var sources: [Place: [Int]] = [:]
        for (number, download) in downloads.enumerated() {
            if let name = download.name { names[Place(download.directory, name), default: []].append(number) }
            if let source = Self.source(download.source) {
                sources[Place(download.directory, source), default: []].append(number)
            }
        }
        var listed: Set<Int> = []
        let rows = try Row.fetchCursor(database, sql: "SELECT directory, name, source FROM downloads")
        while let row = try rows.next() {
            let reader = RowReader(row: row)
            let directory = try reader.text(0)
            if let name = try reader.optionalText(1) {
                listed.formUnion(names[Place(directory, name)] ?? [])
            } else if let source = Self.source(try reader.text(2)) {
                // It had not heard of its name yet.
                listed.formUnion(sources[Place(directory, source)] ?? [])
            }
        }
        return downloads.indices.filter { !listed.contains($0) }.map { downloads[$0] }
    }

    private static func source(_ text: String) -> String? { try? HTTPURL(parsing: text).withoutSecrets }
}
