internal import TowlineCore

/// The permission of one transfer to have connections of its own to a host. Each host permits them to a limited number
/// of transfers at a time (`HostBoard.admit`).
struct HostAdmission {
    private let services: TransferServices
    /// The host of the URL that the user gave, which may redirect to another host.
    private let source: HTTPURL.Origin
    /// The host that has permitted this transfer connections of its own; `nil` if no host has.
    private(set) var host: HTTPURL.Origin?
    /// The host that sends bytes to this transfer now, as counted in `HostBoard.working`; `nil` if no host does.
    private var active: HTTPURL.Origin?

    init(_ services: TransferServices, source: HTTPURL.Origin, host: HTTPURL.Origin?) {
        (self.services, self.source, self.host) = (services, source, host)
    }

    /// Asks the host `origin` for permission to have connections of its own, unless this transfer already has the
    /// permission of a host. Returns whether it has one; it is kept until the transfer's bytes are complete.
    mutating func enter(_ origin: HTTPURL.Origin) -> Bool {
        if host == nil, services.admit(origin, from: source) { host = origin }
        return host != nil
    }

    /// Gives up the permission for connections to the present host and asks the host `origin` for one.
    ///
    /// - Returns: `false` if `origin` permits no further transfer. This transfer then has no permission.
    mutating func move(to origin: HTTPURL.Origin) -> Bool {
        if host != origin { leave() }
        return enter(origin)
    }

    /// Gives up the permission to have connections of its own to a host, so that another transfer can get it.
    mutating func leave() {
        if let host = host.take() { services.board.left(host) }
    }

    /// Records in the host board that this transfer now receives bytes from `origin`; `nil`: from no host. A transfer
    /// that `origin` refuses meanwhile waits for this one instead of failing.
    mutating func works(at origin: HTTPURL.Origin?) {
        guard origin != active else { return }
        services.board.works(from: active, to: origin)
        active = origin
    }

    /// Returns whether other transfers receive bytes from a host. A transfer that this host refuses then waits for them
    /// instead of failing.
    func othersWork(at origin: HTTPURL.Origin) -> Bool {
        services.board.working(at: origin) > (active == origin ? 1 : 0)
    }
}
