internal import TowlineCore

/// The place of one transfer among the transfers of its host: a host admits (counts) a limited number of transfers with
/// connections of their own.
struct HostAdmission {
    private let services: TransferServices
    /// The host of the URL that the user gave, which may redirect to another one.
    private let source: HTTPURL.Origin
    /// The host that counts this transfer as one with connections of its own (`HostBoard.admit`); `nil` if no host
    /// does.
    private(set) var host: HTTPURL.Origin?
    /// The host that sends bytes to this transfer, as counted in `HostBoard.working`; `nil` if no host does.
    private var active: HTTPURL.Origin?

    init(_ services: TransferServices, source: HTTPURL.Origin, host: HTTPURL.Origin?) {
        (self.services, self.source, self.host) = (services, source, host)
    }

    /// Returns whether this transfer is admitted to a host, and admits it if `origin` has room. The transfer keeps the
    /// admission until its bytes are complete.
    mutating func enter(_ origin: HTTPURL.Origin) -> Bool {
        if host == nil, services.admit(origin, from: source) { host = origin }
        return host != nil
    }

    /// Gives up the admission to the present host and asks for admission to `origin`.
    ///
    /// - Returns: `false` if `origin` has no room. The transfer is then admitted to no host.
    mutating func move(to origin: HTTPURL.Origin) -> Bool {
        if host != origin { leave() }
        return enter(origin)
    }

    /// Gives up the admission to a host, so that another transfer can have it, because this transfer needs no more
    /// connections.
    mutating func leave() {
        if let host = host.take() { services.board.left(host) }
    }

    /// Records in the host board that this transfer now receives bytes from `origin`; `nil`: from no host. If the
    /// server has no room for another transfer, that one waits for this one instead of failing.
    mutating func works(at origin: HTTPURL.Origin?) {
        guard origin != active else { return }
        services.board.works(from: active, to: origin)
        active = origin
    }

    /// Returns whether other transfers receive bytes from a host. A transfer that the host refuses then waits for them.
    func othersWork(at origin: HTTPURL.Origin) -> Bool {
        services.board.working(at: origin) > (active == origin ? 1 : 0)
    }
}
