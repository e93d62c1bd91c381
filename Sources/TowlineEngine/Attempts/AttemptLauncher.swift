internal import TowlineCore

/// Sends the HTTP requests of one transfer, and records in the host board (observations about hosts that all transfers
/// share) when they begin and end.
///
/// Every request of a transfer is sent here, so that each is counted once.
struct AttemptLauncher {
    let options: DownloadOptions
    let services: TransferServices
    /// The event queue of the transfer. Each attempt posts its response and its end to this queue.
    let mailbox: TransferMailbox

    /// Sends the HTTP request that `plan` describes, and returns the receiver that handles its response.
    ///
    /// - Parameters:
    ///   - sink: the part file for the bytes, if it is known before the response.
    ///   - slot: the journal entry that records the written bytes.
    ///   - hostCeiling: the number of connections that the host allows; `nil` if no limit is known.
    func launch(
        _ plan: AttemptPlan, sink: (any Sink)? = nil, slot: (any JournalSlot)? = nil, limiters: [RateLimiter] = [],
        hostCeiling: Int?
    ) -> AttemptWriter {
        let (mailbox, storage) = (mailbox, services.storage)
        let writer = AttemptWriter(
            plan: plan, sink: sink, slot: slot, limiters: limiters, mayGather: !options.target.isStream,
            buffers: services.buffers, stages: services.stages, makeHasher: { storage.hasher(for: $0) },
            clock: services.clock, report: { mailbox.post(.attempt($0)) })
        services.board.began(plan.url.origin, plan.sharing)
        let mayBeSmall = writer.mayGather && SharingPolicy.spreads(plan, hostCeiling: hostCeiling)
        let request = AttemptRequest(
            plan, connection: options.connection, mayBeSmall: mayBeSmall, needsProvenEnd: options.target.isStream)
        services.transport.start(request, receiver: writer)
        return writer
    }

    /// Records the end of an attempt in the host board, and whether its response shows that requests for small files
    /// may share a connection. Call it once for each attempt.
    func ended(_ writer: AttemptWriter, _ result: AttemptResult) {
        let (plan, response) = (writer.plan, writer.response)
        services.board.ended(plan.url.origin, plan.sharing)
        let evidence = SharingPolicy.Evidence(
            result, shared: plan.sharesConnection, isStream: response.isStream, promise: response.promise)
        if let evidence { services.board.answered(evidence, from: plan.url.origin, after: response.latency ?? .zero) }
    }

    /// Records in the host board that a response over HTTP/2 was not a small file, so that later requests to this host
    /// each use a connection of their own.
    func noteLongStream(_ writer: AttemptWriter) {
        if writer.response.isLongStream { services.board.answered(.long, from: writer.plan.url.origin) }
    }
}
