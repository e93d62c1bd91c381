import Dispatch
import Foundation
internal import TowlineCore
internal import TowlineEngine

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// A running attempt: one data task, and the receiver of its response.
///
/// The session reports the response on its own queue. The attempt passes the events to its receiver on `queue`, in the
/// same order, and keeps them while the receiver pauses.
///
/// `@unchecked Sendable`: the stored variables are used only on `queue`, except `hasResponse`, which only the queue of
/// the session uses.
final class DataTaskAttempt: @unchecked Sendable {
    /// An event of the task that the receiver has not processed.
    private enum Event {
        case response(HTTPURLResponse)
        case body(Data)
        case end((any Error)?)
        /// The task is cut because the receiver is slower than the network: see `ReceiveWindow`.
        case cut
    }

    private enum State {
        /// The response head has not arrived.
        case waiting
        /// The receiver takes the body.
        case delivering
        /// The receiver paused the body.
        case paused
        case ended
    }

    private let request: AttemptRequest
    private let receiver: any AttemptReceiver
    private let queue = DispatchQueue(label: "org.towline.urlsession.attempt")
    private let window = ReceiveWindow()
    private let whenEnded: @Sendable () -> Void
    /// `true` if the session has reported a final response.
    private var hasResponse = false

    private var state = State.waiting
    private var events: [Event] = []
    private var shape: ResponseShape?
    private var startTime = MonotonicClock.now
    /// The number of body bytes that the receiver took.
    private var receivedCount: Int64 = 0
    /// The number of pauses. A timer ends only the pause that set it.
    private var pauseCount = 0
    private var interimCount = 0
    /// `true` if the receiver expects the body to end soon (`HeadDisposition.proceedBriefly`).
    private var isBrief = false

    /// The maximum number of 1xx responses.
    private static let mostInterim = 20

    init(_ request: AttemptRequest, receiver: any AttemptReceiver, whenEnded: @escaping @Sendable () -> Void) {
        self.request = request
        self.receiver = receiver
        self.whenEnded = whenEnded
    }

    // MARK: From any thread

    /// Sends the request.
    func begin(in session: URLSession, _ delegate: SessionDelegate) {
        queue.async { [self] in
            if case .ended = state { return }
            if let failure = UnsupportedOptions.failure(of: request.connection) { return end(.failed(failure)) }
            do throws(TransportFailure) {
                let task = session.dataTask(with: try URLRequest(request))
                window.open(task)
                delegate.add(self, for: task, in: session)
                startTime = MonotonicClock.now
                after(request.connection.headTimeout) { attempt in
                    guard case .waiting = attempt.state else { return }
                    attempt.end(.failed(SessionFailures.headTimedOut))
                }
                task.resume()
            } catch {
                end(.failed(error))
            }
        }
    }

    /// Ends the attempt as cancelled, unless it has ended.
    func cancel() { queue.async { self.end(.cancelled) } }

    /// Ends a pause of the receiver, or makes it process the bytes that it gathered.
    func proceed() { queue.async { self.resumeOrFlush() } }

    // MARK: From the queue of the session

    /// Receives a response of the task, also a 1xx response.
    func received(_ response: HTTPURLResponse) {
        if response.statusCode >= 200 { hasResponse = true }
        if response.statusCode == 206 { window.allowCut() }
        post(.response(response))
    }

    /// Receives bytes of the body.
    func received(_ data: Data) {
        guard !data.isEmpty else { return }
        switch window.add(data.count) {
        case .open: post(.body(data))
        case .full:
            post(.body(data))
            post(.cut)
            // Not in this call: in swift-corelibs-foundation, cancelling waits for the queue that makes this call.
            queue.async { self.window.close() }
        case .closed: break
        }
    }

    /// Receives the end of the task. `response` is its response, which swift-corelibs-foundation does not report before
    /// if it is a redirect without a usable `Location`.
    func completed(_ response: HTTPURLResponse?, _ error: (any Error)?) {
        if error == nil, !hasResponse, let response { post(.response(response)) }
        post(.end(error))
    }

    private func post(_ event: Event) {
        queue.async { [self] in
            guard state != .ended else { return }
            events.append(event)
            deliver()
        }
    }

    // MARK: On the queue of the attempt

    /// Passes events to the receiver until it pauses or no event is left.
    private func deliver() {
        while state == .waiting || state == .delivering, let event = events.first {
            switch event {
            case .body(let data): guard take(data) else { return }
            case .response(let response): take(response)
            case .end(let error): end(result(after: error))
            case .cut: end(.failed(SessionFailures.tooFast))
            }
            if !events.isEmpty { events.removeFirst() }
        }
        // More bytes are on their way unless the window is empty.
        if window.isEmpty { flush() }
    }

    private func take(_ response: HTTPURLResponse) {
        guard response.statusCode >= 200 else {
            interimCount += 1
            if interimCount > Self.mostInterim { end(.failed(SessionFailures.tooManyInterim)) }
            return
        }
        guard shape == nil else { return end(.failed(SessionFailures.secondHead)) }
        do throws(TransportFailure) {
            let latency = MonotonicClock.now - startTime
            let shape = try ResponseShape(response, scheme: request.url.scheme, latency: latency)
            self.shape = shape
            state = .delivering
            switch receiver.receivedHead(shape.head) {
            case .proceed: break
            case .proceedBriefly(let limit): expectEnd(within: limit)
            case .pause: pause()
            case .stop: end(.stopped)
            }
        } catch {
            end(.failed(error))
        }
    }

    /// Passes bytes to the receiver. Returns `false` if the receiver did not take them.
    private func take(_ data: Data) -> Bool {
        guard shape != nil else {
            end(.failed(SessionFailures.noHead))
            return false
        }
        switch data.withUnsafeBytes(receiver.receivedBody) {
        case .consumed:
            receivedCount += Int64(data.count)
            window.remove(data.count)
            return true
        case .pause: pause()
        case .pauseFor(let delay):
            pause()
            after(delay) { [pauseCount] attempt in
                if attempt.pauseCount == pauseCount { attempt.resume() }
            }
        case .stop: end(.stopped)
        }
        return false
    }

    private func pause() {
        state = .paused
        isBrief = false
        pauseCount += 1
    }

    private func resume() {
        guard state == .paused else { return }
        state = .delivering
        deliver()
    }

    private func resumeOrFlush() {
        if state == .paused { resume() } else { flush() }
    }

    private func flush() {
        if state == .delivering, receivedCount > 0, !receiver.flush() { end(.stopped) }
    }

    private func expectEnd(within limit: Duration) {
        isBrief = true
        after(limit) { attempt in
            guard attempt.isBrief, attempt.state == .delivering else { return }
            attempt.isBrief = false
            attempt.receiver.bodyDeadlinePassed()
        }
    }

    /// Returns the end of the attempt after the task ended. The session may report a body that is shorter than its
    /// `Content-Length` as complete.
    private func result(after error: (any Error)?) -> AttemptEnd {
        if let error { return .failed(SessionFailures.failure(error, hasHead: shape != nil)) }
        guard let shape else { return .failed(SessionFailures.noHead) }
        if let length = shape.length, receivedCount < length { return .failed(SessionFailures.cut) }
        return .complete(shape.framing)
    }

    private func end(_ end: AttemptEnd) {
        guard state != .ended else { return }
        state = .ended
        events = []
        window.close()
        receiver.ended(end)
        whenEnded()
    }

    /// Calls `action` on the queue after `delay`, unless the attempt was released.
    private func after(_ delay: Duration, _ action: @escaping @Sendable (DataTaskAttempt) -> Void) {
        let nanoseconds = Int(min(max(delay / .nanoseconds(1), 0), 1e18))
        queue.asyncAfter(deadline: .now() + .nanoseconds(nanoseconds)) { [weak self] in
            if let self { action(self) }
        }
    }
}
