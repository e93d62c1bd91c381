package import FaultServer
import Synchronization
package import TowlineCore
package import TowlineEngine

/// The fault server without a network: requests are answered by the same resources and replies.
///
/// Plays everything that a client sees as a head, body bytes and an end. Replies that a parser of HTTP has to judge,
/// broken framing for example, are for real servers (``FaultServer/Reply/isSimulable``).
package final class SimulatedServer: Transport {
    /// One request that came.
    package struct Request: Sendable {
        /// When it came.
        package let time: Duration
        /// The request.
        package let request: AttemptRequest
        /// The status of the response, once there is one.
        package var status: Int?
        /// Body bytes that were sent.
        package var bodyBytes: Int64 = 0

        /// The value of a field of the request.
        package func field(_ name: String) -> String? { request.fields.lines.first { $0.name == name }?.value }
    }

    private struct State {
        var requests: [Request] = []
        var attempts: [AttemptID: SimulatedResponse] = [:]
    }

    /// From a request to its response.
    package static let roundTrip = Duration.milliseconds(20)

    private let simulation: Simulation
    private let resources: ResourceDirectory
    private let state = Mutex(State())

    /// Makes a server of these resources, by path.
    package init(_ resources: [String: Resource], in simulation: Simulation) {
        self.simulation = simulation
        self.resources = ResourceDirectory(resources)
    }

    /// The requests of all resources, in order.
    package var requests: [Request] { state.withLock { $0.requests } }

    /// The body bytes that were sent for all requests.
    package var served: Int64 { requests.reduce(0) { $0 + $1.bodyBytes } }

    /// Answers requests for a path with another behaviour from now on.
    package func set(_ behaviour: Behaviour, for path: String) { resources.find(path)?.set(behaviour) }

    /// Serves another version from now on.
    package func replace(_ path: String, with version: Version) { resources.find(path)?.replace(with: version) }

    /// The version that is served now.
    package func version(_ path: String) -> Version? { resources.find(path)?.version }

    /// The client is gone, and with it its connections.
    package func endConnections() {
        let attempts = state.withLock { state in
            defer { state.attempts = [:] }
            return Array(state.attempts.values)
        }
        for attempt in attempts { attempt.disconnect() }
    }

    // MARK: Transport

    package func start(_ request: AttemptRequest, receiver: any AttemptReceiver) {
        let info = RequestInfo(
            connection: 0, target: String(request.url.pathAndQuery),
            fields: request.fields.lines.map { ($0.name, $0.value) }, isTLS: request.url.scheme == .https)
        let resource = resources.find(info.path)
        let context = resource?.begin(info)
        let index = state.withLock { state in
            state.requests.append(Request(time: simulation.now, request: request))
            return state.requests.count - 1
        }
        let response = SimulatedResponse(
            context.map { $0.resource.behaviour.reply($0) } ?? Reply(404, text: "not found\n"),
            rate: context?.resource.rate, simulation, receiver,
            sent: { [weak self] status, count in
                self?.state.withLock { state in
                    if let status { state.requests[index].status = status }
                    state.requests[index].bodyBytes += Int64(count)
                }
                resource?.served(Int64(count))
            },
            over: { [weak self] in
                resource?.end(isCut: true)
                self?.state.withLock { $0.attempts[request.id] = nil }
            })
        state.withLock { $0.attempts[request.id] = response }
        response.begin(after: Self.roundTrip, headTimeout: request.connection.headTimeout)
    }

    package func cancel(_ id: AttemptID) { state.withLock { $0.attempts[id] }?.cancel() }

    package func proceed(_ id: AttemptID) { state.withLock { $0.attempts[id] }?.proceed() }

    package func shutdown() async {
        for response in state.withLock({ Array($0.attempts.values) }) { response.cancel() }
        while state.withLock({ !$0.attempts.isEmpty }) { await simulation.sleep(for: .milliseconds(1)) }
    }
}
