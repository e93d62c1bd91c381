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

    /// The calling thread, by a number that no other one ever has: what `pthread_self` tells of one that has ended is the next
    /// one's.
    package static var current: UInt {
        if let number = pthread_getspecific(key) { return UInt(bitPattern: number) }
        let number = lastNumber.add(1, ordering: .relaxed).newValue
        pthread_setspecific(key, UnsafeRawPointer(bitPattern: number))
        return number
    }

    private static let lastNumber = Atomic<UInt>(0)
    private static let key: pthread_key_t = {
        var key = pthread_key_t()
        pthread_key_create(&key, nil)
        return key
    }()
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
