public import Foundation
import Synchronization
import TowlineCore

extension Download {
    /// A `Progress` object for user interfaces.
    ///
    /// Its unit counts are bytes. Its pause, resume and cancel handlers control the download, and it is paused or
    /// cancelled when the download is. The object is updated until the download is removed or the object is released.
    /// Each use of this property creates a new object.
    public var progress: Progress {
        let progress = Progress(totalUnitCount: -1)
        progress.kind = .file
        progress.isPausable = true
        progress.isCancellable = true
        let download = self
        let follower = ProgressFollower(progress)
        progress.pausingHandler = { follower.obey(.pause) { try await download.pause() } }
        progress.resumingHandler = { follower.obey(.start) { try await download.start() } }
        progress.cancellationHandler = { follower.obey(.cancel) { try await download.cancel() } }
        follower.follow(download)
        return progress
    }
}

/// An adapter that copies the snapshots of a download into a `Progress`, and passes its pause and cancel to the
/// download. The handlers of the `Progress` own it, so that it ends with the `Progress`.
///
/// `@unchecked Sendable`: the documentation of `Progress` allows use from any thread, but the type is not `Sendable`
/// on Linux.
private final class ProgressFollower: @unchecked Sendable {
    /// The commands that a `Progress` passes to its handlers.
    enum Command: Hashable { case pause, start, cancel }

    private weak var progress: Progress?
    /// The calls of handlers to come that the follower itself caused, and that are no commands of the user. Foundation
    /// calls a handler once for each change, on Linux later and on another thread.
    private let echoes = Mutex<[Command: Int]>([:])
    private let task = Mutex<Task<Void, Never>?>(nil)

    init(_ progress: Progress) { self.progress = progress }

    deinit { task.withLock { $0?.cancel() } }

    func follow(_ download: Download) {
        let following = Task { [weak self] in
            for await snapshot in await download.snapshots {
                guard let self, let progress = self.progress else { return }
                self.show(snapshot, in: progress)
            }
        }
        task.withLock { $0 = following }
    }

    /// Runs a command for the download in a task, if the user of the `Progress` requested it.
    func obey(_ command: Command, _ body: @escaping @Sendable () async throws -> Void) {
        let isEcho = echoes.withLock { echoes in
            guard let count = echoes[command], count > 0 else { return false }
            echoes[command] = count - 1
            return true
        }
        if !isEcho { Task { try? await body() } }
    }

    private func show(_ snapshot: DownloadSnapshot, in progress: Progress) {
        if snapshot.state == .cancelled, !progress.isCancelled {
            echo(.cancel) { progress.cancel() }
        } else if snapshot.state == .paused, !progress.isPaused {
            echo(.pause) { progress.pause() }
        } else if !snapshot.isOver, snapshot.state != .paused, progress.isPaused {
            echo(.start) { progress.resume() }
        }
        progress.totalUnitCount = snapshot.completeLength ?? -1
        progress.completedUnitCount = snapshot.heldBytes
    }

    private func echo(_ command: Command, _ change: () -> Void) {
        echoes.withLock { $0[command, default: 0] += 1 }
        change()
    }
}
