import Synchronization

/// A directory of the server's resources by path.
package final class ResourceDirectory: Sendable {
    private let exact: [String: ResourceState]
    private let prefixes: [(String, ResourceState)]

    /// Creates a directory. A path that ends in `*` matches all paths with the text before the `*` as a prefix.
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

    /// Returns the resource of a path, or `nil`. The longest matching prefix wins.
    package func find(_ path: String) -> ResourceState? {
        exact[path] ?? prefixes.first { path.hasPrefix($0.0) }?.1
    }
}

/// The mutable state of one resource.
package final class ResourceState: Sendable {
    /// The resource, and the counts of its requests and body bytes.
    fileprivate struct Contents {
        var resource: Resource
        var requests = 0
        var running = 0
        var bodyBytes: Int64 = 0
    }

    private let state: Mutex<Contents>

    init(_ resource: Resource) { state = Mutex(Contents(resource: resource)) }

    /// The current version.
    package var version: Version { state.withLock { $0.resource.version } }

    /// Replaces the version for future requests.
    package func replace(with version: Version) { state.withLock { $0.resource.version = version } }

    /// Replaces the behaviour for future requests.
    package func set(_ behaviour: Behaviour) { state.withLock { $0.resource.behaviour = behaviour } }

    /// Numbers a request, performs the switches that are due, and returns the context for the reply.
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

    /// Records the end of a response. `isCut` is `true` if the client closed the connection early. Called once per
    /// request.
    package func end(isCut: Bool) {
        guard isCut, let delay = state.withLock({ $0.resource.lateEnd }) else { return countDown() }
        Task {
            try? await Task.sleep(for: delay)
            countDown()
        }
    }

    private func countDown() { state.withLock { $0.running -= 1 } }
}

extension ResourceState.Contents {
    /// Performs the switches that are due; the last of them decides the version.
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
