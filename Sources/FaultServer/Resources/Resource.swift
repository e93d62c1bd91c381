/// A resource that the server serves under one path.
package struct Resource: Sendable {
    /// The first version; ``switches`` and ``FaultServer/replace(_:with:)`` replace it.
    package var version: Version
    /// The `Content-Type` field; `nil` omits the field.
    package var contentType: String?
    /// The fields that are added to each correct response.
    package var fields: [(String, String)]
    /// The bytes per second of each response; `nil` for no limit.
    package var rate: Int64?
    /// The rule that selects the reply to each request.
    package var behaviour: Behaviour
    /// The automatic changes of the version.
    package var switches: [ContentSwitch]
    /// The time that a request still counts as running after its client closed the connection; `nil` for zero.
    package var lateEnd: Duration?

    /// Creates a resource; by default a correct range server.
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

    /// Creates a resource with a length in bytes; by default a correct range server.
    package init(
        length: Int64, seed: UInt64 = 1, rate: Int64? = nil, behaviour: Behaviour = .correct,
        switches: [ContentSwitch] = []
    ) {
        self.init(Version(seed: seed, length: length), rate: rate, behaviour: behaviour, switches: switches)
    }
}

/// A single automatic change of a resource's version ("the file changes on the server").
/// Responses that have begun continue with the bytes of their version.
package struct ContentSwitch: Sendable {
    /// The event that causes the change.
    package enum Trigger: Sendable {
        /// The time at which all responses together have served this number of body bytes of the resource.
        case afterBodyBytes(Int64)
        /// The time just before the response to this request of the resource; the first request is 0.
        case atRequest(Int)
    }

    /// The event that causes the change.
    package var trigger: Trigger
    /// The version to serve from then on.
    package var version: Version

    /// Creates a change.
    package init(_ trigger: Trigger, to version: Version) {
        self.trigger = trigger
        self.version = version
    }
}
