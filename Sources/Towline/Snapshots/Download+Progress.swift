public import Foundation
import Synchronization
import TowlineCore

extension Download {
    /// A `Progress` object for user interfaces.
    ///
    /// Its unit counts are bytes. Its pause, resume and cancel handlers control the download, and it is paused or
    /// cancelled when the download is. The object is updated until the download is removed. Each use of this property
    /// creates a new object.
    public var progress: Progress {
        let progress = Progress(totalUnitCount: -1)
        progress.kind = .file
        progress.isPausable = true
        progress.isCancellable = true
        let download = self
        let follower = ProgressFollower(progress)
        progress.pausingHandler = { follower.obey { try await download.pause() } }
        progress.resumingHandler = { follower.obey { try await download.start() } }
        progress.cancellationHandler = { follower.obey { try await download.cancel() } }
        Task { for await snapshot in await download.snapshots { follower.show(snapshot) } }
        return progress
    }
}

/// An adapter that copies the snapshots of a download into a `Progress`, and passes its pause and cancel to the
/// download.
///
/// `@unchecked Sendable`: the documentation of `Progress` allows use from any thread, but the type is not `Sendable`
/// on Linux.
private final class ProgressFollower: @unchecked Sendable {
    private weak var progress: Progress?
    /// `true` while the follower itself pauses, resumes or cancels the `Progress`, whose handlers then must not send a
    /// command to the download.
    private let isFollowing = Atomic<Bool>(false)

    init(_ progress: Progress) { self.progress = progress }

    /// Runs a command for the download in a task, if the user of the `Progress` requested it.
    func obey(_ command: @escaping @Sendable () async throws -> Void) {
        if !isFollowing.load(ordering: .acquiring) { Task { try? await command() } }
    }

    func show(_ snapshot: DownloadSnapshot) {
        guard let progress else { return }
        isFollowing.store(true, ordering: .releasing)
        defer { isFollowing.store(false, ordering: .releasing) }
        if snapshot.state == .cancelled, !progress.isCancelled { progress.cancel() }
        if snapshot.state == .paused, !progress.isPaused { progress.pause() }
        if snapshot.state != .paused, progress.isPaused { progress.resume() }
        progress.totalUnitCount = snapshot.completeLength ?? -1
        progress.completedUnitCount = snapshot.heldBytes
    }
}
