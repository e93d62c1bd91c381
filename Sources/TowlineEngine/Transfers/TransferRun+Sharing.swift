internal import TowlineCore

/// The functions of `TransferRun` that decide which connections it may use: one that requests for small files share
/// (`SharingPolicy`), or its own, which a host permits to a limited number of transfers.
extension TransferRun {
    /// The state of this transfer that decides whether it needs the right to run in a batch (its slot).
    var situation: BatchTurn.Situation {
        BatchTurn.Situation(
            origin: attempts.origin ?? machine.nextOrigin, hasAttempts: !attempts.writers.isEmpty,
            awaitsSilentServer: machine.awaitsSilentServer, isAdmitted: admission.host != nil,
            waitsForTurn: machine.waitsForTurn, wait: machine.wait(now: services.now),
            waitsForServer: machine.waitsForServer)
    }

    /// Lends the right to run in a batch and the permission for connections to a host to others, while this one waits.
    func rest() {
        if turn.yieldsToOthers(attempts.writers, admittedTo: admission.host), let first = attempts.writers.first {
            admission.leave()
            services.transport.cancel(first.plan.id)
        }
        if turn.rest(situation) { admission.leave() }
    }

    /// `true` if the requests of this transfer may share a connection with others. Not under a rate limit, which would
    /// pause all requests of that connection together.
    var mayShareConnections: Bool {
        !machine.needsOwnConnection && !attempts.isLimited && options.connection.mayShareConnections
    }

    /// Returns whether this transfer may have connections of its own to a host. Asks the host for permission if it is
    /// needed because the requests of the transfer share no connection (`shares`).
    func mayConnect(to origin: HTTPURL.Origin, shares: Bool) -> Bool {
        if let host = admission.host {
            // The first request may be running at another host, the target of a redirect now or earlier.
            let isUnderWay = machine.beginsAnew && !attempts.writers.isEmpty
            return host == origin || isUnderWay || moveAdmission(to: origin)
        }
        return !shares && attempts.writers.isEmpty && isAdmitted(to: origin)
    }

    /// Gives up the permission for connections to the present host, and returns whether `origin` grants one instead.
    func moveAdmission(to origin: HTTPURL.Origin) -> Bool {
        // While it publishes, the transfer needs no connection.
        machine.phase == .publishing || admission.move(to: origin)
    }

    private func isAdmitted(to origin: HTTPURL.Origin) -> Bool {
        machine.phase == .publishing || admission.enter(origin)
    }

    /// Sends the request that waits for permission to open a connection to its host, possibly after a redirect, if the
    /// host permits it now.
    func takeTurn() {
        guard machine.waitsForTurn, turn.takeBack(situation),
            isAdmitted(to: machine.nextOrigin) || context().sharing != .none
        else { return }
        perform(decide(.tick, context()))
    }
}

extension ConnectionOptions {
    /// Returns whether requests may be streams of one HTTP/2 connection: the user has not chosen the HTTP version.
    var mayShareConnections: Bool { httpProtocol == .automatic }
}
