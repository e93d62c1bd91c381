import Foundation
import TowlineCore
import TowlineEngine

/// The JSON encoding of download requests in the registry, the database of all downloads.
enum StoredRequest {
    static func encode(_ request: DownloadRequest) throws(TowlineError) -> [UInt8] {
        do {
            let encoder = JSONEncoder()
            encoder.outputFormatting = .sortedKeys
            return Array(try encoder.encode(request))
        } catch {
            throw TowlineError(
                .unusableOption,
                "cannot save the request: a number in the request is infinite or not a number. Use finite numbers")
        }
    }

    static func decode(_ bytes: [UInt8]) throws -> DownloadRequest {
        try JSONDecoder().decode(DownloadRequest.self, from: Data(bytes))
    }
}

extension DownloadRequest {
    /// Creates a request from the URL, destination, metadata, group and priority of an entry in the registry. Used if
    /// the stored request cannot be decoded.
    init(_ record: RegisteredDownload) {
        let directory = URL(fileURLWithPath: record.directory, isDirectory: true)
        let destination: Destination =
            record.name.map { .file(directory.appendingPathComponent($0, isDirectory: false)) } ?? .directory(directory)
        self.init(from: URL(string: record.source) ?? URL(fileURLWithPath: "/"), to: destination)
        metadata = record.metadata
        group = record.group
        priority = record.priority
    }
}
