import Foundation
import Synchronization
import TowlineCore
import TowlineEngine

/// The transport of one downloader over a scripted network.
final class ScriptedTransport: Transport {
    private let network: ScriptedNetwork
    private let running = Mutex<Set<AttemptID>>([])

    init(network: ScriptedNetwork) { self.network = network }

    func start(_ request: AttemptRequest, receiver: any AttemptReceiver) {
        running.withLock { _ = $0.insert(request.id) }
        network.start(request, receiver: receiver) { self.running.withLock { _ = $0.remove(request.id) } }
    }

    func cancel(_ id: AttemptID) { network.cancel(id) }

    func proceed(_ id: AttemptID) { network.proceed(id) }

    func shutdown() async {
        while case let rest = running.withLock({ $0 }), !rest.isEmpty {
            // An attempt may still be on its way to the network.
            for id in rest { network.cancel(id) }
            try? await Task.sleep(for: .milliseconds(1))
        }
    }
}

/// The connections of a scripted network. All calls of receivers happen on one serial queue, in order.
final class ScriptedConnections: Sendable {
    private let queue = DispatchQueue(label: "towline.scripted-network")
    private let connections = Mutex<[AttemptID: ScriptedConnection]>([:])
    private let clock: ScriptedClock

    init(_ clock: ScriptedClock) { self.clock = clock }

    /// Delivers a reply to a receiver. Without a reply, the connection fails.
    func open(
        _ id: AttemptID, _ receiver: any AttemptReceiver, _ reply: ScriptedReply?, _ rate: Int?,
        _ ended: @escaping @Sendable () -> Void
    ) {
        let connection = ScriptedConnection(receiver, reply, rate, queue, clock) { [weak self] in
            self?.connections.withLock { $0[id] = nil }
            ended()
        }
        connections.withLock { $0[id] = connection }
        queue.async { connection.begin() }
    }

    func cancel(_ id: AttemptID) { perform(id) { $0.end(.cancelled) } }

    func proceed(_ id: AttemptID) { perform(id) { $0.proceed() } }

    func breakOff(_ id: AttemptID) { perform(id) { $0.breakOff() } }

    func breakAll() {
        for id in connections.withLock({ Array($0.keys) }) { breakOff(id) }
    }

    private func perform(_ id: AttemptID, _ body: @escaping @Sendable (ScriptedConnection) -> Void) {
        guard let connection = connections.withLock({ $0[id] }) else { return }
        queue.async { body(connection) }
    }
}

/// One connection, which delivers one response.
///
/// `@unchecked Sendable`: the queue of the network runs every call.
final class ScriptedConnection: @unchecked Sendable {
    /// The number of bytes that arrive at once: at most those of a quarter of a second, so that no connection is
    /// silent.
    private var pieceLength: Int { rate.map { max(1, min(16 << 10, $0 / 4)) } ?? 16 << 10 }

    private let receiver: any AttemptReceiver
    private let reply: ScriptedReply?
    private let rate: Int?
    private let queue: DispatchQueue
    private let clock: ScriptedClock
    private let ended: @Sendable () -> Void
    private var rest: Data
    private var hasHead = false
    private var isPaused = false
    /// The number of pauses and of their ends, so that a timer ends only its own pause.
    private var pauseNumber = 0
    private var isOver = false

    init(
        _ receiver: any AttemptReceiver, _ reply: ScriptedReply?, _ rate: Int?, _ queue: DispatchQueue,
        _ clock: ScriptedClock, ended: @escaping @Sendable () -> Void
    ) {
        (self.receiver, self.reply, self.rate, self.queue, self.ended) = (receiver, reply, rate, queue, ended)
        self.clock = clock
        rest = reply?.body ?? Data()
    }

    func begin() {
        guard !isOver else { return }
        guard let reply else { return end(.failed(TransportFailure(.connectFailed, "the network is not connected"))) }
        hasHead = true
        switch receiver.receivedHead(reply.head) {
        case .proceed: deliver()
        case .proceedBriefly(let time):
            after(time) { connection in if !connection.isPaused { connection.receiver.bodyDeadlinePassed() } }
            deliver()
        case .pause: pause()
        case .stop: end(.stopped)
        }
    }

    func proceed() {
        guard !isOver else { return }
        if !isPaused {
            if !receiver.flush() { end(.stopped) }
            return
        }
        isPaused = false
        pauseNumber += 1
        deliver()
    }

    func breakOff() {
        end(.failed(TransportFailure(hasHead ? .bodyCut : .closedBeforeHead, "the connection was closed")))
    }

    func end(_ end: AttemptEnd) {
        guard !isOver else { return }
        isOver = true
        receiver.ended(end)
        ended()
    }

    /// Delivers the next piece of the body, and the others after it.
    private func deliver() {
        guard !isOver, !isPaused else { return }
        guard !rest.isEmpty else { return end(.complete(.delimited)) }
        let piece = rest.prefix(pieceLength)
        switch piece.withUnsafeBytes({ receiver.receivedBody($0) }) {
        case .consumed:
            rest = rest.dropFirst(piece.count)
            guard receiver.flush() else { return end(.stopped) }
            after(rate.map { .seconds(Double(piece.count) / Double($0)) } ?? .zero) { $0.deliver() }
        case .pause: pause()
        case .pauseFor(let time):
            let number = pause()
            after(time) { if $0.pauseNumber == number { $0.proceed() } }
        case .stop: end(.stopped)
        }
    }

    /// Delivers no bytes until `proceed`. Returns the number of the pause.
    @discardableResult
    private func pause() -> Int {
        isPaused = true
        pauseNumber += 1
        return pauseNumber
    }

    private func after(_ time: Duration, _ body: @escaping @Sendable (ScriptedConnection) -> Void) {
        let call: @Sendable () -> Void = { if !self.isOver { body(self) } }
        guard time > .zero else { return queue.async(execute: call) }
        // The clock waits for the call, so that all bytes of the passed time arrive when a test advances the clock.
        clock.after(time) { self.queue.sync(execute: call) }
    }
}
