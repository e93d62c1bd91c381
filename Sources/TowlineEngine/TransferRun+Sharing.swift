internal import TowlineCore

/// Connections that small files share (`SharingPolicy`), and admission to connections of their own.
extension TransferRun {
    /// Returns whether requests may share a connection. Not under a rate limit, which would pause all requests of that
    /// connection together.
    var mayShareConnections: Bool {
        !machine.needsOwnConnection && !isLimited
            && options.connection.mayShareConnections
    }

    /// Returns whether the user limited the rate of this transfer or of all transfers together.
    var isLimited: Bool { limiter.isLimited || services.limiter.isLimited }

    /// Returns whether this transfer may have connections of its own to a host. Asks for admission if this transfer is
    /// not admitted and its requests do not share a connection (`shares`).
    func mayConnect(to origin: HTTPURL.Origin, shares: Bool) -> Bool {
        if let admission {
            // The first request may be running at another host, the target of a redirect now or earlier.
            let isUnderWay = machine.beginsAnew && !writers.isEmpty
            return admission == origin || isUnderWay || moveAdmission(to: origin)
        }
        return !shares && writers.isEmpty && isAdmitted(to: origin)
    }

    /// Moves the admission of this transfer to another host.
    ///
    /// - Returns: `false` if that host has no room. The transfer is then admitted to no host.
    func moveAdmission(to origin: HTTPURL.Origin) -> Bool {
        if admission != origin { giveUpAdmission() }
        return isAdmitted(to: origin)
    }

    /// Sends the request of a transfer that waits for a connection of its own, or for another host after a redirect, if
    /// there is room.
    func takeTurn() {
        guard machine.waitsForTurn, takeBackSlot(), isAdmitted(to: machine.nextOrigin) || context().sharing != .none
        else {
            return
        }
        perform(machine.handle(.tick, context()))
    }

    /// Returns whether this transfer is admitted to a host, and admits it if there is room. Like the slot in a batch,
    /// it keeps the admission until its bytes are complete.
    private func isAdmitted(to origin: HTTPURL.Origin) -> Bool {
        guard machine.phase != .publishing else { return true }
        if admission == nil, services.admit(origin, from: options.url.origin) { admission = origin }
        return admission != nil
    }

    /// Enters the host that delivers bytes in the host board; `nil`: no host. Other transfers wait for this one if the
    /// server has no room for them meanwhile.
    func tellWork(_ origin: HTTPURL.Origin?) {
        guard origin != worksAt else { return }
        services.board.works(from: worksAt, to: origin)
        worksAt = origin
    }

    /// Returns whether other transfers receive bytes from the host of an attempt.
    func othersWork(at id: AttemptID) -> Bool {
        guard let origin = writer(id)?.plan.url.origin else { return false }
        return services.board.working(at: origin) > (worksAt == origin ? 1 : 0)
    }

    /// Releases the admission, because this transfer needs no more connections.
    func giveUpAdmission() {
        guard let admission else { return }
        services.board.left(admission)
        self.admission = nil
    }
}

extension ConnectionOptions {
    /// Returns whether requests may be streams of one HTTP/2 connection.
    var mayShareConnections: Bool { httpProtocol == .automatic }
}
