import Glibc
import Synchronization
package import TowlineThreads

/// A record of the threads that called `note`, in order.
package final class ThreadTrace: Sendable {
    private let list = Mutex<[UInt]>([])

    package init() {}

    package var threads: [UInt] { list.withLock { $0 } }

    /// Records the calling thread.
    package func note() { list.withLock { $0.append(Self.current) } }

    /// The unique number of the calling thread. `pthread_self` is not unique: a new thread may get the value of an
    /// ended thread.
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
    /// Returns an executor that runs on a new thread, which never ends.
    ///
    /// - Parameter first: a closure that the thread runs first.
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
