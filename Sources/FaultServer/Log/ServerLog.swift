import Synchronization

/// The ordered log of connections and requests. Its methods may be called from any thread.
package final class ServerLog: Sendable {
    private struct Waiter {
        let key: Int
        let condition: @Sendable (Records) -> Bool
        let continuation: CheckedContinuation<Void, Never>
    }

    /// The records, and the callers that wait for a condition on them.
    private struct Contents {
        var records = Records()
        var nextKey = 0
        var waiters: [Waiter] = []
    }

    private let state = Mutex(Contents())
    private let start = ContinuousClock.now
    private let lines: LogFile?

    init(file: LogFile? = nil) { lines = file }

    /// A snapshot of the log.
    package var records: Records { state.withLock { $0.records } }

    /// The connections in the order of acceptance.
    package var connections: [Records.Connection] { records.connections }

    /// The requests in the order of arrival.
    package var requests: [Records.Request] { records.requests }

    /// Returns the requests of one path, in order.
    package func requests(_ path: String) -> [Records.Request] { records.requests(path) }

    /// Returns the number of body bytes of one path that the kernel accepted.
    package func bodyBytesServed(_ path: String) -> Int64 { state.withLock { $0.records.bodyBytesServed(path) } }

    /// Waits until the condition holds or the task is cancelled. The log evaluates the condition on each
    /// change, under its lock: the condition must be quick and must not use the log.
    package func wait(until condition: @escaping @Sendable (Records) -> Bool) async {
        let key = state.withLock { state in
            state.nextKey += 1
            return state.nextKey
        }
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let holds = state.withLock { state in
                    if Task.isCancelled || condition(state.records) { return true }
                    state.waiters.append(Waiter(key: key, condition: condition, continuation: continuation))
                    return false
                }
                if holds { continuation.resume() }
            }
        } onCancel: {
            let waiter = state.withLock { state in
                state.waiters.firstIndex { $0.key == key }.map { state.waiters.remove(at: $0) }
            }
            waiter?.continuation.resume()
        }
    }

    func accepted() -> Int {
        let now = ContinuousClock.now - start
        return change { records in
            let number = records.connections.count
            records.connections.append(Records.Connection(number: number, accepted: now))
            records.openConnections += 1
            records.mostOpenConnections = max(records.mostOpenConnections, records.openConnections)
            lines?.connection(records.connections[number])
            return number
        }
    }

    func closed(connection: Int) {
        let now = ContinuousClock.now - start
        change { records in
            guard records.connections[connection].closed == nil else { return }
            records.connections[connection].closed = now
            records.openConnections -= 1
            lines?.closed(records.connections[connection])
        }
    }

    func came(_ info: RequestInfo) -> Int {
        let now = ContinuousClock.now - start
        return change { records in
            let number = records.requests.count
            records.requests.append(Records.Request(number: number, info: info, time: now))
            lines?.request(records.requests[number])
            return number
        }
    }

    func sent(status: Int, request: Int) { change { $0.requests[request].status = status } }

    func sent(bodyBytes: Int64, request: Int) { change { $0.addBodyBytes(bodyBytes, request: request) } }

    func ended(request: Int) {
        let now = ContinuousClock.now - start
        change { records in
            records.requests[request].ended = now
            lines?.ended(records.requests[request])
        }
    }

    @discardableResult
    private func change<Result: Sendable>(_ body: (inout Records) -> Result) -> Result {
        let (result, due) = state.withLock { state in
            let result = body(&state.records)
            guard !state.waiters.isEmpty else { return (result, [Waiter]()) }
            let records = state.records
            let due = state.waiters.filter { $0.condition(records) }
            state.waiters.removeAll { waiter in due.contains { $0.key == waiter.key } }
            return (result, due)
        }
        due.forEach { $0.continuation.resume() }
        return result
    }
}
