import Synchronization
package import TowlineCore
package import TowlineEngine

/// The notices of one transfer and its result.
package struct Outcome: Sendable {
    package let result: Result<CompletedTransfer, TowlineError>
    package let notices: [TransferNotice]

    /// Makes one.
    package init(result: Result<CompletedTransfer, TowlineError>, notices: [TransferNotice]) {
        self.result = result
        self.notices = notices
    }

    package var code: TowlineError.Code? {
        if case .failure(let error) = result { error.code } else { nil }
    }
    /// Bytes that came over the wire, overlaps included; 0 for a failure.
    package var received: Int64 {
        if case .success(let completed) = result { completed.receivedBytes } else { 0 }
    }
    package var succeeded: Bool { code == nil }
    /// The exit status that `tow get` would have.
    package var status: ExitStatus {
        if case .failure(let error) = result { ExitStatus(error) } else { .success }
    }
    package var message: String {
        if case .failure(let error) = result { error.message } else { "" }
    }
    package func says(_ kind: TransferNotice.Kind) -> Bool { notices.contains { $0.kind == kind } }
}

/// Keeps what a transfer tells, and wakes who waits for it.
package final class RecordingObserver: TransferObserver {
    private struct State {
        var notices: [TransferNotice] = []
        var snapshot = TransferSnapshot()
        var isOver = false
        var waiters: [(@Sendable (TransferSnapshot) -> Bool, CheckedContinuation<Void, Never>)] = []
    }

    private let state = Mutex(State())

    /// An observer without notices.
    package init() {}

    package var notices: [TransferNotice] { state.withLock { $0.notices } }
    package var snapshot: TransferSnapshot { state.withLock { $0.snapshot } }

    package func progressed(_ snapshot: TransferSnapshot) {
        let due = state.withLock { state in
            state.snapshot = snapshot
            // Each condition is asked once: one that looks at more than the snapshot may change its mind in between.
            let answers = state.waiters.map { (waiter: $0, isDue: $0.0(snapshot)) }
            state.waiters = answers.filter { !$0.isDue }.map(\.waiter)
            return answers.filter(\.isDue).map(\.waiter.1)
        }
        due.forEach { $0.resume() }
    }

    package func noticed(_ notice: TransferNotice) { state.withLock { $0.notices.append(notice) } }

    /// No further snapshot comes.
    package func end() {
        let due = state.withLock { state in
            state.isOver = true
            defer { state.waiters = [] }
            return state.waiters.map(\.1)
        }
        due.forEach { $0.resume() }
    }

    /// Returns when a snapshot meets the condition, or the transfer is over.
    package func wait(until condition: @escaping @Sendable (TransferSnapshot) -> Bool) async {
        await withCheckedContinuation { continuation in
            let holds = state.withLock { state in
                if state.isOver || condition(state.snapshot) { return true }
                state.waiters.append((condition, continuation))
                return false
            }
            if holds { continuation.resume() }
        }
    }
}
