import CTowline
import Dispatch
import Synchronization
package import TowlineCore

/// Blocking work of adapters, off Swift's cooperative threads: these are as few as the processors, and must not wait.
package enum WorkThread {
    private final class Work: Sendable {
        let body: @Sendable () -> Void
        init(_ body: @escaping @Sendable () -> Void) { self.body = body }
    }

    /// Runs `body` on a thread of its own. The flag tells it when the task is cancelled; it is awaited all the same, so
    /// that nothing goes on behind the caller's back.
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

    /// Runs short blocking work on a pooled thread of Dispatch, so that no thread starts for each call.
    package static func runBriefly<Value: Sendable, Failure: Error>(
        _ body: @escaping @Sendable () throws(Failure) -> Value
    ) async throws(Failure) -> Value {
        try await withCheckedContinuation { continuation in
            DispatchQueue.global().async {
                continuation.resume(returning: Result { () throws(Failure) in try body() })
            }
        }.get()
    }

    /// Runs `body` on a thread of its own; on the caller's if no other can be had, so that nobody waits for ever.
    package static func start(_ body: @escaping @Sendable () -> Void) {
        if !tryStart(body) { body() }
    }

    /// Runs `body` on a thread of its own, if one can be had.
    package static func tryStart(_ body: @escaping @Sendable () -> Void) -> Bool {
        let argument = Unmanaged.passRetained(Work(body))
        let code = towline_run_detached(
            { argument in
                if let argument { Unmanaged<Work>.fromOpaque(argument).takeRetainedValue().body() }
            }, argument.toOpaque())
        if code != 0 { argument.release() }
        return code == 0
    }
}

/// Whether work is still wanted.
package final class CancelFlag: Sendable {
    private let flag = Atomic<Bool>(false)

    /// A flag that is not set.
    package init() {}

    /// Whether it is set.
    package var isSet: Bool { flag.load(ordering: .relaxed) }

    /// Sets it, for good.
    package func set() { flag.store(true, ordering: .relaxed) }

    /// - Throws: `cancelled`, once it is set.
    package func check(_ subject: String) throws(TowlineError) {
        if isSet { throw TowlineError(.cancelled, "\(subject): the operation was cancelled") }
    }
}
