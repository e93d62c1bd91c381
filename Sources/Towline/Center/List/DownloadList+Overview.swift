import Foundation
import TowlineCore
import TowlineEngine

/// Queries for callers of the library about the running downloads, their hosts and the segments of a download.
extension DownloadList {
    func runningDownloads() throws(TowlineError) -> [DownloadSnapshot] {
        try running.checkOpen()
        return running.all.map(\.snapshot).sorted { $0.id < $1.id }
    }

    func hosts() throws(TowlineError) -> [HostStatus] {
        try running.checkOpen()
        let counts = running.all.reduce(into: [:]) { $0[$1.share.host, default: 0] += 1 }
        return counts.sorted { $0.key < $1.key }.map { host, count in
            let origin = (try? HTTPURL(parsing: host))?.origin
            let wait = origin.flatMap { board.wait(of: $0) }
            return HostStatus(
                host: host, running: count, ceiling: origin.flatMap { board.ceiling($0) },
                notBefore: wait.map { Date(timeIntervalSinceNow: $0 / .seconds(1)) })
        }
    }

    /// Returns the downloaded byte ranges of a download, and the segments that connections are receiving: from its
    /// transfer if it runs, otherwise from its journal. A finished download has the complete range.
    func segments(_ id: DownloadID) async throws(TowlineError) -> DownloadSegments {
        try running.checkOpen()
        if let runner = running[id]?.runner { return await runner.segments }
        guard let record = try await registry.download(id) else {
            throw Self.notFound
        }
        let length = record.completeLength
        if record.state.isComplete, let length {
            return DownloadSegments(completeLength: length, written: ByteRangeSet([ByteRange(0, length)]))
        }
        let held = await files.held([record])[0]
        return DownloadSegments(completeLength: length, written: held?.written ?? ByteRangeSet())
    }

    /// Returns the identifier that begins or ends with `text`, else that of the download with this file name; `nil` if
    /// no download matches. Throws `unusableOption` if more than one download matches.
    func find(_ text: String) async throws(TowlineError) -> DownloadID? {
        try running.checkOpen()
        if let short = ShortDownloadID(text) {
            let found = try await registry.names(matching: short, limit: 2)
            guard found.count < 2 else {
                throw TowlineError(
                    .unusableOption, "the ID \(text) matches more than one download. Give more characters of the ID")
            }
            if let id = found.first { return id }
        }
        let named = try await registry.downloads(named: text, limit: Self.maximumCandidates + 1)
        guard named.count > 1 else { return named.first?.id }
        throw Self.ambiguous(text, named)
    }

    /// The maximum number of downloads with the same name that an error message lists.
    private static let maximumCandidates = 5

    private static func ambiguous(_ name: String, _ downloads: [RegisteredDownload]) -> TowlineError {
        let candidates = downloads.prefix(maximumCandidates).map { download in
            let directory = TerminalSafeText.make(download.directory, width: 80)
            return "\(download.id.description.suffix(ShortDownloadID.shownLength)) in \(directory)"
        }
        let more = downloads.count > candidates.count ? ", and others" : ""
        return TowlineError(
            .unusableOption,
            "more than one download has the name \(TerminalSafeText.make(name, width: 80)). Give one of these IDs: "
                + candidates.joined(separator: ", ") + more)
    }
}
