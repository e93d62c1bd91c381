internal import TowlineCore

/// Sends the requests of one transfer, and records in the host board (the facts about hosts that all transfers share)
/// when they begin and end.
///
/// Every request of a transfer is made here, so that each is counted once.
struct AttemptLauncher {
    let options: DownloadOptions
    let services: TransferServices
    /// The event queue of the transfer, which receives the reports about its attempts (requests).
    let mailbox: TransferMailbox

    /// Sends the request that `plan` describes, and returns the receiver of its response.
    ///
    /// - Parameters:
    ///   - sink: the part file for the bytes, if it is known before the response.
    ///   - slot: the journal slot that records the written bytes.
    ///   - hostCeiling: the known connection limit of the host; `nil` if none is known.
    ///   - receiveBuffer: see `AttemptRequest.receiveBuffer`.
    func launch(
        _ plan: AttemptPlan, sink: (any Sink)? = nil, slot: (any JournalSlot)? = nil, limiters: [RateLimiter] = [],
        hostCeiling: Int?, receiveBuffer: Int? = nil
    ) -> AttemptWriter {
        let (mailbox, storage) = (mailbox, services.storage)
        let writer = AttemptWriter(
            plan: plan, sink: sink, slot: slot, limiters: limiters, mayGather: !options.target.isStream,
            buffers: services.buffers, stages: services.stages, makeHasher: { storage.hasher(for: $0) },
            clock: services.clock, report: { mailbox.post(.attempt($0)) })
        services.board.began(plan.url.origin, plan.sharing)
        let mayBeSmall = writer.mayGather && SharingPolicy.spreads(plan, hostCeiling: hostCeiling)
        var request = AttemptRequest(
            plan, connection: options.connection, mayBeSmall: mayBeSmall, needsProvenEnd: options.target.isStream)
        request.receiveBuffer = receiveBuffer
        services.transport.start(request, receiver: writer)
        return writer
    }

    /// Records the end of an attempt in the host board, and whether its response shows that small files may share a
    /// connection. Call it once for each attempt.
    func ended(_ writer: AttemptWriter, _ result: AttemptResult) {
        let (plan, response) = (writer.plan, writer.response)
        services.board.ended(plan.url.origin, plan.sharing)
        let evidence = SharingPolicy.Evidence(
            result, shared: plan.sharesConnection, isStream: response.isStream, promise: response.promise)
        if let evidence { services.board.answered(evidence, from: plan.url.origin, after: response.latency ?? .zero) }
    }

    /// Records in the host board that a response over HTTP/2 was not a small file: long files do not share connections.
    func noteLongStream(_ writer: AttemptWriter) {
        if writer.response.isLongStream { services.board.answered(.long, from: writer.plan.url.origin) }
    }
}
