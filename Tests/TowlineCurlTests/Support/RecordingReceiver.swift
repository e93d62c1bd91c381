import Synchronization
import TowlineCore
import TowlineEngine

/// Records what an attempt delivers, lets a test choose the answers, and notes every breach of the port's order.
final class RecordingReceiver: AttemptReceiver {
    struct Record: Sendable {
        var heads: [ResponseHead] = []
        var body: [UInt8] = []
        var bodyCallCount = 0
        /// The number of calls that were answered with a pause.
        var pauseCount = 0
        /// The number of bytes delivered when the transport last reported that no more bytes are available.
        var restedAt = 0
        var restCount = 0
        /// The number of calls that reported a late end.
        var lateCount = 0
        var end: AttemptEnd?
        var violations: [String] = []
        fileprivate var isInCall = false
    }

    private struct Waiter {
        let condition: @Sendable (Record) -> Bool
        let continuation: CheckedContinuation<Record, Never>
    }

    private struct State {
        var record = Record()
        var waiters: [Waiter] = []
    }

    private let state = Mutex(State())
    private let onHead: @Sendable (ResponseHead) -> HeadDisposition
    private let onBody: @Sendable (UnsafeRawBufferPointer, Record) -> BodyDisposition
    private let onRest: @Sendable (Record) -> Bool
    private let keepsBody: Bool

    init(
        keepsBody: Bool = true,
        onHead: @escaping @Sendable (ResponseHead) -> HeadDisposition = { _ in .proceed },
        onBody: @escaping @Sendable (UnsafeRawBufferPointer, Record) -> BodyDisposition = { _, _ in .consumed },
        onRest: @escaping @Sendable (Record) -> Bool = { _ in true }
    ) {
        self.onRest = onRest
        self.keepsBody = keepsBody
        self.onHead = onHead
        self.onBody = onBody
    }

    var record: Record { state.withLock { $0.record } }

    /// Waits until the record fulfils `condition`.
    @discardableResult
    func until(_ condition: @escaping @Sendable (Record) -> Bool) async -> Record {
        await withCheckedContinuation { continuation in
            let ready = state.withLock { state -> Record? in
                if condition(state.record) { return state.record }
                state.waiters.append(Waiter(condition: condition, continuation: continuation))
                return nil
            }
            if let ready { continuation.resume(returning: ready) }
        }
    }

    /// Waits for the end.
    func finished() async -> Record { await until { $0.end != nil } }

    func receivedHead(_ head: ResponseHead) -> HeadDisposition {
        enter { record in
            if !record.heads.isEmpty { record.violations.append("a second head") }
            if record.bodyCallCount > 0 { record.violations.append("a head after the body") }
        }
        let disposition = onHead(head)
        leave { record in
            record.heads.append(head)
            if case .pause = disposition { record.pauseCount += 1 }
        }
        return disposition
    }

    func bodyDeadlinePassed() {
        enter { record in
            if record.heads.isEmpty { record.violations.append("a late end before the head") }
        }
        leave { $0.lateCount += 1 }
    }

    func receivedBody(_ bytes: UnsafeRawBufferPointer) -> BodyDisposition {
        let record = enter { record in
            if record.heads.isEmpty { record.violations.append("body before the head") }
            if bytes.isEmpty { record.violations.append("an empty piece of body") }
        }
        let disposition = onBody(bytes, record)
        leave { record in
            record.bodyCallCount += 1
            switch disposition {
            case .consumed: if keepsBody { record.body.append(contentsOf: bytes) }
            case .pause, .pauseFor: record.pauseCount += 1
            case .stop: break
            }
        }
        return disposition
    }

    func flush() -> Bool {
        let record = enter { record in
            if record.bodyCallCount == 0 { record.violations.append("a rest before the body") }
        }
        let goesOn = onRest(record)
        leave { record in
            record.restCount += 1
            record.restedAt = record.body.count
        }
        return goesOn
    }

    func ended(_ end: AttemptEnd) {
        enter { _ in }
        leave { $0.end = end }
    }

    @discardableResult
    private func enter(_ check: (inout Record) -> Void) -> Record {
        state.withLock { state in
            if state.record.isInCall { state.record.violations.append("two calls at once") }
            if state.record.end != nil { state.record.violations.append("a call after the end") }
            state.record.isInCall = true
            check(&state.record)
            return state.record
        }
    }

    private func leave(_ change: (inout Record) -> Void) {
        let (ready, record) = state.withLock { state -> ([Waiter], Record) in
            change(&state.record)
            state.record.isInCall = false
            let record = state.record
            // Each condition is evaluated once: a condition that reads more than the record may change in between.
            let answers = state.waiters.map { (waiter: $0, isReady: $0.condition(record)) }
            state.waiters = answers.filter { !$0.isReady }.map(\.waiter)
            return (answers.filter(\.isReady).map(\.waiter), record)
        }
        for waiter in ready { waiter.continuation.resume(returning: record) }
    }
}

extension AttemptEnd {
    /// The kind of failure; `nil` if the attempt did not fail.
    var failureKind: TransportFailure.Kind? {
        if case .failed(let failure) = self { failure.kind } else { nil }
    }
    /// The failure's message; `nil` if the attempt did not fail.
    var failureMessage: String? {
        if case .failed(let failure) = self { failure.message } else { nil }
    }
    var isStopped: Bool { if case .stopped = self { true } else { false } }
    var isCancelled: Bool { if case .cancelled = self { true } else { false } }
    var framing: Framing? { if case .complete(let framing) = self { framing } else { nil } }
}
