public import Foundation
import TowlineCore

extension Download {
    /// A `Progress` object for user interfaces.
    ///
    /// Its unit counts are bytes. Its pause, resume and cancel handlers control the download. The object is updated
    /// until the download is finished, failed or cancelled. Each use of this property creates a new object.
    public var progress: Progress {
        let progress = Progress(totalUnitCount: -1)
        progress.kind = .file
        progress.isPausable = true
        progress.isCancellable = true
        let download = self
        progress.pausingHandler = { Task { try? await download.pause() } }
        progress.resumingHandler = { Task { try? await download.resume() } }
        progress.cancellationHandler = { Task { try? await download.cancel() } }
        let follower = ProgressFollower(progress)
        Task { for await snapshot in await download.snapshots { follower.show(snapshot) } }
        return progress
    }
}

/// An adapter that copies snapshots into a `Progress`.
///
/// `@unchecked Sendable`: the documentation of `Progress` allows use from any thread, but the type is not `Sendable`
/// on Linux.
private final class ProgressFollower: @unchecked Sendable {
    private let progress: Progress

    init(_ progress: Progress) { self.progress = progress }

    func show(_ snapshot: DownloadSnapshot) {
        progress.totalUnitCount = snapshot.completeLength ?? -1
        progress.completedUnitCount = snapshot.heldBytes
    }
}
