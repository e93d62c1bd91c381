/// How a resource answers its requests: which of them get a fault, and which the correct reply.
package struct Behaviour: Sendable {
    /// Makes the reply to one request.
    package let reply: @Sendable (RequestContext) -> Reply

    /// A behaviour written by hand. ``RequestContext/correct`` is the reply to start from.
    package init(_ reply: @escaping @Sendable (RequestContext) -> Reply) { self.reply = reply }

    /// RFC 9110 to the letter.
    package static let correct = Behaviour { $0.correct }

    /// The fault, for every request.
    package static func always(_ fault: Fault) -> Behaviour { Behaviour(fault.make) }

    /// The fault for the first `count` requests of the resource, the correct reply after them.
    package static func first(_ count: Int, _ fault: Fault) -> Behaviour {
        Behaviour { $0.request.index < count ? fault.make($0) : $0.correct }
    }

    /// The correct reply for the first `count` requests of the resource, the fault after them.
    package static func after(_ count: Int, _ fault: Fault) -> Behaviour {
        Behaviour { $0.request.index < count ? $0.correct : fault.make($0) }
    }

    /// The fault for the requests with those numbers; the first of the resource is 0.
    package static func on(_ indices: Set<Int>, _ fault: Fault) -> Behaviour {
        Behaviour { indices.contains($0.request.index) ? fault.make($0) : $0.correct }
    }

    /// One entry for each request, in order, `nil` for the correct reply, which also follows the last entry.
    package static func script(_ faults: [Fault?]) -> Behaviour {
        Behaviour { context in
            let index = context.request.index
            guard index < faults.count, let fault = faults[index] else { return context.correct }
            return fault.make(context)
        }
    }

    /// The fault for the requests that meet the condition.
    package static func when(
        _ fault: Fault, _ condition: @escaping @Sendable (RequestInfo) -> Bool
    ) -> Behaviour {
        Behaviour { condition($0.request) ? fault.make($0) : $0.correct }
    }

    /// The fault for requests whose first byte asked is not zero: resumes and further segments.
    package static func onResume(_ fault: Fault) -> Behaviour {
        when(fault) { request in
            guard case .range(let range) = request.range(ofLength: .max) else { return false }
            return range.lowerBound > 0
        }
    }

    /// The first behaviour for the first `count` requests, the second after them.
    package static func first(_ count: Int, _ first: Behaviour, then second: Behaviour) -> Behaviour {
        Behaviour { ($0.request.index < count ? first : second).reply($0) }
    }
}

/// A request together with what there is to answer it with.
package struct RequestContext: Sendable {
    /// The request.
    package let request: RequestInfo
    /// The resource's version at this moment.
    package let version: Version
    /// The resource.
    package let resource: Resource

    /// The reply of a correct server.
    package var correct: Reply { RangeServer.reply(to: request, version: version, resource: resource) }

    /// The reply of a correct server that holds another version.
    package func correct(of other: Version) -> Reply {
        RangeServer.reply(to: request, version: other, resource: resource)
    }

    /// The bytes that were asked for; all of them if no satisfiable range was.
    package var asked: Range<Int64> {
        guard case .range(let range) = request.range(ofLength: version.length) else { return 0..<version.length }
        return range
    }
}
