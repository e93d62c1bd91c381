import Synchronization

/// The resources of a server by path.
package final class ResourceDirectory: Sendable {
    private let exact: [String: ResourceState]
    private let prefixes: [(String, ResourceState)]

    /// Makes a directory. A path that ends in `*` stands for all that begin with what comes before it.
    package init(_ resources: [String: Resource]) {
        var exact: [String: ResourceState] = [:]
        var prefixes: [(String, ResourceState)] = []
        for (path, resource) in resources {
            if path.hasSuffix("*") {
                prefixes.append((String(path.dropLast()), ResourceState(resource)))
            } else {
                exact[path] = ResourceState(resource)
            }
        }
        self.exact = exact
        self.prefixes = prefixes.sorted { $0.0.utf8.count > $1.0.utf8.count }
    }

    /// Returns the resource of a path.
    package func find(_ path: String) -> ResourceState? {
        exact[path] ?? prefixes.first { path.hasPrefix($0.0) }?.1
    }
}

/// What changes about one resource while it is served.
package final class ResourceState: Sendable {
    fileprivate struct State {
        var resource: Resource
        var requests = 0
        var running = 0
        var bodyBytes: Int64 = 0
    }

    private let state: Mutex<State>

    init(_ resource: Resource) { state = Mutex(State(resource: resource)) }

    /// The version that is served now.
    package var version: Version { state.withLock { $0.resource.version } }

    /// Serves another version from now on.
    package func replace(with version: Version) { state.withLock { $0.resource.version = version } }

    /// Changes what requests are answered with.
    package func set(_ behaviour: Behaviour) { state.withLock { $0.resource.behaviour = behaviour } }

    /// Numbers the request, makes the switches that are due, and gives what to answer it with.
    package func begin(_ request: RequestInfo) -> RequestContext {
        state.withLock { state in
            var request = request
            request.index = state.requests
            state.requests += 1
            state.running += 1
            request.concurrent = state.running
            state.makeSwitches()
            return RequestContext(request: request, version: state.resource.version, resource: state.resource)
        }
    }

    /// Counts body bytes that were sent.
    package func served(_ bodyBytes: Int64) {
        state.withLock { state in
            state.bodyBytes += bodyBytes
            state.makeSwitches()
        }
    }

    /// A response is over, or was cut by its client. Called once for each request.
    package func end(isCut: Bool) {
        guard isCut, let delay = state.withLock({ $0.resource.lateEnd }) else { return countDown() }
        Task {
            try? await Task.sleep(for: delay)
            countDown()
        }
    }

    private func countDown() { state.withLock { $0.running -= 1 } }
}

extension ResourceState.State {
    /// Makes the switches that are due, in the order they were given.
    fileprivate mutating func makeSwitches() {
        guard let last = resource.switches.last(where: isDue) else { return }
        resource.version = last.version
        resource.switches = resource.switches.filter { !isDue($0) }
    }

    private func isDue(_ change: ContentSwitch) -> Bool {
        switch change.trigger {
        case .afterBodyBytes(let count): bodyBytes >= count
        case .atRequest(let index): requests > index
        }
    }
}
