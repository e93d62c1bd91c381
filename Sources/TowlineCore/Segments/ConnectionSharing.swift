/// Whether a request has its connection to itself.
package enum ConnectionSharing: Hashable, Sendable {
    /// It has.
    case none
    /// It is one of many streams of a connection (RFC 9113 §5), of which each of the transport's threads has one.
    case one
    /// It is one of some streams of each of several connections: from far away what they cost is less than what they bring,
    /// because each window begins small and grows for itself (RFC 6928: ten segments, doubled with each round trip).
    case several

    /// Several are so many: sixteen with those of the five downloads that come first, which is what a host gets (DESIGN.md §5).
    package static let connections = 11
    /// And so many streams each has then.
    package static let streams = 24

    /// What becomes of it where a host has shown to allow few connections, or has many already: it gets no more for that.
    package func limited(ceiling: Int?, connections: Int) -> ConnectionSharing {
        let isLimited = ceiling != nil || connections > ConnectionBudget.most
        return self == .several && isLimited ? .one : self
    }
}
