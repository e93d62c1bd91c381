import Glibc
import Synchronization
package import TowlineThreads

/// Which threads came by, in order.
package final class ThreadTrace: Sendable {
    private let list = Mutex<[UInt]>([])

    package init() {}

    package var threads: [UInt] { list.withLock { $0 } }

    /// Notes the calling thread.
    package func note() { list.withLock { $0.append(Self.current) } }

    /// The calling thread.
    package static var current: UInt { UInt(pthread_self()) }
}

extension ThreadExecutor {
    /// An executor that a thread serves, which nobody can end.
    ///
    /// - Parameter first: what that thread does before.
    package static func served(_ first: @escaping @Sendable () -> Void = {}) async -> ThreadExecutor {
        let executor = ThreadExecutor()
        let (isServed, served) = AsyncStream<Void>.makeStream()
        WorkThread.start {
            first()
            executor.run { served.finish() }
        }
        for await _ in isServed {}
        return executor
    }
}
