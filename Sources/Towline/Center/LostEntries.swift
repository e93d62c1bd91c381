import Synchronization
import TowlineCore
import TowlineEngine

/// Finds the downloads of a list that was lost: the running ones, which stay active, and those with a journal.
final class LostEntries: Sendable {
    private let files: LocalFiles
    private let identifiers = IDSource()
    /// The running downloads; `nil` before the downloader has launched.
    let running = Mutex<RunningDownloads?>(nil)

    init(files: LocalFiles) { self.files = files }

    /// The part file of a download. Two downloads cannot have the same one.
    private struct Part: Hashable {
        let directory: String
        let name: String?
    }

    /// Returns the entries of the downloads, with the IDs that they had. No ID or part file is in two of them.
    func entries(in directories: [String]) -> [RegisteredDownload] {
        var entries = running.withLock { $0 }?.records ?? []
        let runningIDs = Set(entries.map(\.id))
        var ids: Set<DownloadID> = []
        let parts = Set(entries.map { Part(directory: $0.directory, name: $0.name) })
        for orphan in directories.flatMap({ files.orphans(in: $0) })
        where !runningIDs.contains(orphan.id)
            && !parts.contains(Part(directory: orphan.directory, name: orphan.name))
        {
            var orphan = orphan
            // The directory was copied together with its journals.
            if !ids.insert(orphan.id).inserted { orphan.id = identifiers.next() }
            entries.append(orphan)
        }
        return entries
    }
}
