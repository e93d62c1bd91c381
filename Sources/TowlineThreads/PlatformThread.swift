import Glibc

/// A POSIX thread, for an event loop or for work that blocks. The cooperative pool has a thread per core, and a
/// terminal that is stopped with Ctrl-S or a pipe without a writer must not block one of those.
///
/// Either `join` or `detach` must be called, once.
package struct PlatformThread: Sendable {
    private let handle: pthread_t

    /// Starts a thread that runs `body`, with the signal mask of the calling thread. The result is `nil` if the system
    /// allows no more threads (`RLIMIT_NPROC`).
    package init?(_ body: @escaping @Sendable () -> Void) {
        let box = Unmanaged.passRetained(Box(body))
        var handle = pthread_t()
        let result = pthread_create(
            &handle, nil,
            { argument in
                guard let argument else { return nil }
                Unmanaged<Box>.fromOpaque(argument).takeRetainedValue().body()
                return nil
            }, box.toOpaque())
        guard result == 0 else {
            box.release()
            return nil
        }
        self.handle = handle
    }

    /// Returns when the thread has ended.
    package func join() { pthread_join(handle, nil) }

    /// Frees the thread's resources when it ends. `join` must not be called.
    package func detach() { pthread_detach(handle) }

    private final class Box: Sendable {
        let body: @Sendable () -> Void
        init(_ body: @escaping @Sendable () -> Void) { self.body = body }
    }
}
