internal import TowlineCore

/// Shared connections for requests of small files (`SharingPolicy`), and the permission to open connections of its own:
/// a host admits (counts) a limited number of transfers with such connections.
extension TransferRun {
    /// Returns whether requests may share a connection. Not under a rate limit, which would pause all requests of that
    /// connection together.
    var mayShareConnections: Bool {
        !machine.needsOwnConnection && !isLimited
            && options.connection.mayShareConnections
    }

    /// Returns whether the user limited the rate of this transfer or of all transfers together.
    var isLimited: Bool { limiter.isLimited || services.limiter.isLimited }

    /// Returns whether this transfer may have connections of its own to a host. Asks for admission to the host if this
    /// transfer is not admitted and its requests do not share a connection (`shares`).
    func mayConnect(to origin: HTTPURL.Origin, shares: Bool) -> Bool {
        if let admission {
            // The first request may be running at another host, the target of a redirect now or earlier.
            let isUnderWay = machine.beginsAnew && !writers.isEmpty
            return admission == origin || isUnderWay || moveAdmission(to: origin)
        }
        return !shares && writers.isEmpty && isAdmitted(to: origin)
    }

    /// Gives up the admission to the present host and asks for admission to `origin`.
    ///
    /// - Returns: `false` if `origin` has no room. The transfer is then admitted to no host.
    func moveAdmission(to origin: HTTPURL.Origin) -> Bool {
        if admission != origin { giveUpAdmission() }
        return isAdmitted(to: origin)
    }

    /// Sends the request of a transfer that waits for a connection of its own, or for another host after a redirect, if
    /// the host has room for it now.
    func takeTurn() {
        guard machine.waitsForTurn, takeBackSlot(), isAdmitted(to: machine.nextOrigin) || context().sharing != .none
        else {
            return
        }
        perform(decide(.tick, context()))
    }

    /// Returns whether this transfer is admitted to a host, and admits it if the host has room. The transfer keeps the
    /// admission until its bytes are complete. `true` while it publishes, when it needs no connection.
    private func isAdmitted(to origin: HTTPURL.Origin) -> Bool {
        guard machine.phase != .publishing else { return true }
        if admission == nil, services.admit(origin, from: options.url.origin) { admission = origin }
        return admission != nil
    }

    /// Records in the host board that this transfer now receives bytes from `origin`; `nil`: from no host. If the
    /// server has no room for another transfer, that one waits for this one instead of failing.
    func tellWork(_ origin: HTTPURL.Origin?) {
        guard origin != activeHost else { return }
        services.board.works(from: activeHost, to: origin)
        activeHost = origin
    }

    /// Returns whether other transfers receive bytes from the host of an attempt.
    func othersWork(at id: AttemptID) -> Bool {
        guard let origin = writer(id)?.plan.url.origin else { return false }
        return services.board.working(at: origin) > (activeHost == origin ? 1 : 0)
    }

    /// Gives up the admission to a host, so that another transfer can have it, because this transfer needs no more
    /// connections.
    func giveUpAdmission() {
        guard let admission else { return }
        services.board.left(admission)
        self.admission = nil
    }
}

extension ConnectionOptions {
    /// Returns whether requests may be streams of one HTTP/2 connection: the user has not chosen the HTTP version.
    var mayShareConnections: Bool { httpProtocol == .automatic }
}
