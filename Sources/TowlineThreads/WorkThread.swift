import Dispatch
import Synchronization
package import TowlineCore

/// Threads for blocking work of adapters. Swift's cooperative threads, one for each processor, must not block.
package enum WorkThread {
    /// Runs `body` on a separate thread. The flag is set when the task is cancelled. The function still waits for the
    /// end of `body`, so that no work continues after the function returns.
    package static func run<Value: Sendable>(
        _ body: @escaping @Sendable (CancelFlag) throws(TowlineError) -> Value
    ) async throws(TowlineError) -> Value {
        let flag = CancelFlag()
        let result = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                start { continuation.resume(returning: Result { () throws(TowlineError) in try body(flag) }) }
            }
        } onCancel: {
            flag.set()
        }
        return try result.get()
    }

    /// Runs short blocking work on a pooled Dispatch thread, to avoid a new thread for each call.
    package static func runBriefly<Value: Sendable, Failure: Error>(
        _ body: @escaping @Sendable () throws(Failure) -> Value
    ) async throws(Failure) -> Value {
        try await withCheckedContinuation { continuation in
            DispatchQueue.global().async {
                continuation.resume(returning: Result { () throws(Failure) in try body() })
            }
        }.get()
    }

    /// Runs `body` on a separate thread. If no thread can be started, runs `body` on the calling thread, so that no
    /// caller waits for ever.
    package static func start(_ body: @escaping @Sendable () -> Void) {
        if !tryStart(body) { body() }
    }

    /// Runs `body` on a separate thread. Returns `false` if no thread can be started.
    package static func tryStart(_ body: @escaping @Sendable () -> Void) -> Bool {
        guard let thread = PlatformThread(body) else { return false }
        thread.detach()
        return true
    }
}

/// A flag that cancels work on another thread.
package final class CancelFlag: Sendable {
    private let flag = Atomic<Bool>(false)

    /// Creates a flag that is not set.
    package init() {}

    /// Returns whether the flag is set.
    package var isSet: Bool { flag.load(ordering: .relaxed) }

    /// Sets the flag permanently.
    package func set() { flag.store(true, ordering: .relaxed) }

    /// Throws `cancelled` if the flag is set. The message begins with `subject`.
    package func check(_ subject: String) throws(TowlineError) {
        if isSet { throw TowlineError(.cancelled, "\(subject): the operation was cancelled") }
    }
}
