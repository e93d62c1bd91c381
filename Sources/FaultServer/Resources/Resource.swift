/// What is served under one path.
package struct Resource: Sendable {
    /// The first version; ``switches`` and ``FaultServer/replace(_:with:)`` put others in its place.
    package var version: Version
    /// The `Content-Type` field; `nil` leaves it out.
    package var contentType: String?
    /// Fields added to each correct response.
    package var fields: [(String, String)]
    /// Bytes per second of each response; `nil` is as fast as the network takes them.
    package var rate: Int64?
    /// What each request is answered with.
    package var behaviour: Behaviour
    /// When the version changes by itself.
    package var switches: [ContentSwitch]
    /// For this time a request counts as running after its client closed the connection.
    package var lateEnd: Duration?

    /// A resource; by default a correct range server.
    package init(
        _ version: Version, contentType: String? = "application/octet-stream", fields: [(String, String)] = [],
        rate: Int64? = nil, behaviour: Behaviour = .correct, switches: [ContentSwitch] = []
    ) {
        self.version = version
        self.contentType = contentType
        self.fields = fields
        self.rate = rate
        self.behaviour = behaviour
        self.switches = switches
    }

    /// A resource of that many bytes; by default a correct range server.
    package init(
        length: Int64, seed: UInt64 = 1, rate: Int64? = nil, behaviour: Behaviour = .correct,
        switches: [ContentSwitch] = []
    ) {
        self.init(Version(seed: seed, length: length), rate: rate, behaviour: behaviour, switches: switches)
    }
}

/// A change of a resource's version that happens by itself, once ("the file changes on the server").
/// Responses that have begun go on with the bytes of the version they began with.
package struct ContentSwitch: Sendable {
    /// When it happens.
    package enum Trigger: Sendable {
        /// As soon as that many body bytes of the resource were served, over all responses.
        case afterBodyBytes(Int64)
        /// Just before the n-th request of the resource is answered; the first is 0.
        case atRequest(Int)
    }

    /// When it happens.
    package var trigger: Trigger
    /// What is served from then on.
    package var version: Version

    /// A change.
    package init(_ trigger: Trigger, to version: Version) {
        self.trigger = trigger
        self.version = version
    }
}
