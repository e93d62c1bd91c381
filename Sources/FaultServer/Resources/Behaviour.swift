/// A rule that selects the reply to each request of a resource: a fault or the correct reply.
package struct Behaviour: Sendable {
    /// Returns the reply to one request.
    package let reply: @Sendable (RequestContext) -> Reply

    /// Creates a behaviour from a function, which can modify ``RequestContext/correct``.
    package init(_ reply: @escaping @Sendable (RequestContext) -> Reply) { self.reply = reply }

    /// The correct reply for every request (RFC 9110).
    package static let correct = Behaviour { $0.correct }

    /// Returns a behaviour with the fault for every request.
    package static func always(_ fault: Fault) -> Behaviour { Behaviour(fault.make) }

    /// Returns a behaviour with the fault for the first `count` requests of the resource, then the correct reply.
    package static func first(_ count: Int, _ fault: Fault) -> Behaviour {
        Behaviour { $0.request.index < count ? fault.make($0) : $0.correct }
    }

    /// Returns a behaviour with the correct reply for the first `count` requests of the resource, then the fault.
    package static func after(_ count: Int, _ fault: Fault) -> Behaviour {
        Behaviour { $0.request.index < count ? $0.correct : fault.make($0) }
    }

    /// Returns a behaviour with the fault for the requests with the given numbers; the first request is 0.
    package static func on(_ indices: Set<Int>, _ fault: Fault) -> Behaviour {
        Behaviour { indices.contains($0.request.index) ? fault.make($0) : $0.correct }
    }

    /// Returns a behaviour with one entry for each request, in order. `nil` means the correct reply, as do later
    /// requests.
    package static func script(_ faults: [Fault?]) -> Behaviour {
        Behaviour { context in
            let index = context.request.index
            guard index < faults.count, let fault = faults[index] else { return context.correct }
            return fault.make(context)
        }
    }

    /// Returns a behaviour with the fault for the requests that meet the condition.
    package static func when(
        _ fault: Fault, _ condition: @escaping @Sendable (RequestInfo) -> Bool
    ) -> Behaviour {
        Behaviour { condition($0.request) ? fault.make($0) : $0.correct }
    }

    /// Returns a behaviour with the fault for ranges that do not begin at byte 0: resumed and further segments.
    package static func onResume(_ fault: Fault) -> Behaviour {
        when(fault) { request in
            guard case .range(let range) = request.range(ofLength: .max) else { return false }
            return range.lowerBound > 0
        }
    }

    /// Returns a behaviour that uses `first` for the first `count` requests, then `second`.
    package static func first(_ count: Int, _ first: Behaviour, then second: Behaviour) -> Behaviour {
        Behaviour { ($0.request.index < count ? first : second).reply($0) }
    }
}

/// A request with the resource and the version that answer it.
package struct RequestContext: Sendable {
    /// The request.
    package let request: RequestInfo
    /// The version of the resource at the time of the request.
    package let version: Version
    /// The resource.
    package let resource: Resource

    /// The reply of a correct server.
    package var correct: Reply { RangeServer.reply(to: request, version: version, resource: resource) }

    /// Returns the reply of a correct server that has another version.
    package func correct(of other: Version) -> Reply {
        RangeServer.reply(to: request, version: other, resource: resource)
    }

    /// The requested bytes; the whole file without a satisfiable range.
    package var asked: Range<Int64> {
        guard case .range(let range) = request.range(ofLength: version.length) else { return 0..<version.length }
        return range
    }
}
