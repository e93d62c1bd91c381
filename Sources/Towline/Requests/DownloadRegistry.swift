public import Foundation
import TowlineCore
import TowlineRegistry

/// The place of a downloader's list of downloads: a state directory, or memory for tests and previews.
public struct DownloadRegistry: Sendable {
    /// A function that opens the list. Its argument finds the downloads of a list that was lost.
    let open: @Sendable (_ rebuild: @escaping SQLiteRegistry.Rebuild) async throws(TowlineError) -> SQLiteRegistry

    /// The list in a state directory, which survives a relaunch, a kill and a power failure.
    ///
    /// A missing directory is created. Only one downloader at a time can open a state directory.
    public static func stateDirectory(_ directory: URL) -> DownloadRegistry {
        DownloadRegistry { rebuild throws(TowlineError) in
            try await SQLiteRegistry.open(stateDirectory: directory.path, rebuild: rebuild)
        }
    }

    /// A list in memory, for tests and previews. Each downloader has an empty list of its own, which is lost when the
    /// downloader closes.
    ///
    /// Downloaded files are on the disk as usual. ``Downloader/adoptUnfinished(in:)`` adds incomplete ones to a new
    /// list.
    public static var inMemory: DownloadRegistry {
        DownloadRegistry { _ throws(TowlineError) in try SQLiteRegistry() }
    }
}
