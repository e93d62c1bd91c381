internal import TowlineCore

/// The functions of `TransferRun` that decide which connections it may use: requests for small files may share one
/// (`SharingPolicy`), and a host admits a limited number of transfers with connections of their own.
extension TransferRun {
    /// The facts about this transfer that decide whether it needs its batch slot (the right to run in a batch).
    var situation: BatchTurn.Situation {
        BatchTurn.Situation(
            origin: attempts.origin ?? machine.nextOrigin, hasAttempts: !attempts.writers.isEmpty,
            isAdmitted: admission.host != nil, waitsForTurn: machine.waitsForTurn,
            wait: machine.wait(now: services.now), waitsForServer: machine.waitsForServer)
    }

    /// Lends the batch slot and the admission to a host to other downloads while this one does not need them.
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

    /// Returns whether this transfer may have connections of its own to a host. Asks for admission to the host if this
    /// transfer is not admitted and its requests do not share a connection (`shares`).
    func mayConnect(to origin: HTTPURL.Origin, shares: Bool) -> Bool {
        if let host = admission.host {
            // The first request may be running at another host, the target of a redirect now or earlier.
            let isUnderWay = machine.beginsAnew && !attempts.writers.isEmpty
            return host == origin || isUnderWay || moveAdmission(to: origin)
        }
        return !shares && attempts.writers.isEmpty && isAdmitted(to: origin)
    }

    /// Gives up the admission to the present host and asks for admission to `origin`. Returns whether it is granted.
    func moveAdmission(to origin: HTTPURL.Origin) -> Bool {
        // While it publishes, the transfer needs no connection.
        machine.phase == .publishing || admission.move(to: origin)
    }

    private func isAdmitted(to origin: HTTPURL.Origin) -> Bool {
        machine.phase == .publishing || admission.enter(origin)
    }

    /// Sends the request of a transfer that waits for a connection of its own, or for another host after a redirect, if
    /// the host has room for it now.
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
