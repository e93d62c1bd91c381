internal import TowlineCore

/// Which small files share a connection (`SharingPolicy`).
extension TransferRun {
    /// A limit pauses one connection after the other, each with all that share it.
    var mayShareConnections: Bool {
        !machine.needsOwnConnection && !isLimited
            && options.connection.mayShareConnections
    }

    /// Whether the user limited its rate, or that of all together.
    var isLimited: Bool { limiter.isLimited || services.limiter.isLimited }

    /// Whether it may have connections of its own to the host. Asked for when it has none and will not share.
    func mayConnect(to origin: HTTPURL.Origin, shares: Bool) -> Bool {
        if let admission {
            // Its first request may be under way elsewhere: where a redirect led, or led to before.
            let isUnderWay = machine.beginsAnew && !writers.isEmpty
            return admission == origin || isUnderWay || moveAdmission(to: origin)
        }
        return !shares && writers.isEmpty && isAdmitted(to: origin)
    }

    /// From one host to another.
    ///
    /// - Returns: `false`: there is no room, and it is admitted nowhere.
    func moveAdmission(to origin: HTTPURL.Origin) -> Bool {
        if admission != origin { giveUpAdmission() }
        return isAdmitted(to: origin)
    }

    /// Begins if it has just become one that needs a connection of its own, or was led to another host, and there is room for it.
    func takeTurn() {
        guard machine.waitsForTurn, takeBackSlot(), isAdmitted(to: machine.nextOrigin) || context().sharing != .none
        else {
            return
        }
        perform(machine.handle(.tick, context()))
    }

    /// From the moment that there is room for it until its bytes are there, as with its slot in a batch.
    private func isAdmitted(to origin: HTTPURL.Origin) -> Bool {
        guard machine.phase != .publishing else { return true }
        if admission == nil, services.admit(origin, from: options.url.origin) { admission = origin }
        return admission != nil
    }

    /// Says where it gets bytes: others that its server has no room for meanwhile wait for it.
    func tellWork(_ origin: HTTPURL.Origin?) {
        guard origin != worksAt else { return }
        services.board.works(from: worksAt, to: origin)
        worksAt = origin
    }

    /// Whether others get bytes from the host that an attempt asked.
    func othersWork(at id: AttemptID) -> Bool {
        guard let origin = writer(id)?.plan.url.origin else { return false }
        return services.board.working(at: origin) > (worksAt == origin ? 1 : 0)
    }

    /// It needs no connection any more.
    func giveUpAdmission() {
        guard let admission else { return }
        services.board.left(admission)
        self.admission = nil
    }
}

extension ConnectionOptions {
    /// Whether streams of one connection can be had, and may be.
    var mayShareConnections: Bool { httpProtocol == .automatic }
}
