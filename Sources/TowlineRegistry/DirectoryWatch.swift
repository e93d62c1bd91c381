@preconcurrency import Dispatch
import Glibc

/// Reports that a file of a directory was created, changed, deleted or renamed, or that the directory itself was
/// (inotify(7)).
final class DirectoryWatch: Sendable {
    private let descriptor: Int32
    private let source: any DispatchSourceRead

    /// Starts to watch a directory; `nil` if the system has no free inotify instance.
    ///
    /// - Parameter changed: called on `queue` after changes; several changes may be one call.
    init?(_ path: String, queue: DispatchQueue, changed: @escaping @Sendable () -> Void) {
        let descriptor = inotify_init1(Int32(IN_NONBLOCK | IN_CLOEXEC))
        guard descriptor >= 0 else { return nil }
        self.descriptor = descriptor
        source = DispatchSource.makeReadSource(fileDescriptor: descriptor, queue: queue)
        source.setEventHandler {
            var events = [UInt8](repeating: 0, count: 4096)
            while read(descriptor, &events, events.count) > 0 {}
            changed()
        }
        source.setCancelHandler { close(descriptor) }
        source.activate()
        follow(path)
    }

    deinit { source.cancel() }

    /// Watches the directory that now has this path. Does nothing if it is already watched.
    func follow(_ path: String) {
        let events = IN_CREATE | IN_MODIFY | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_DELETE_SELF | IN_MOVE_SELF
        _ = inotify_add_watch(descriptor, path, UInt32(events))
    }
}
