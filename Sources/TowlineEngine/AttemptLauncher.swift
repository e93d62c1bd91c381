internal import TowlineCore

/// Sends the requests of one transfer, and enters them in the host board when they begin and end.
///
/// All requests of transfers are made here, so that each is counted once.
struct AttemptLauncher {
    let options: DownloadOptions
    let services: TransferServices
    /// The mailbox for reports about the attempts.
    let mailbox: TransferMailbox

    /// Sends the request of a plan.
    ///
    /// - Parameters:
    ///   - sink: the destination of the bytes, if it is known before the response.
    ///   - slot: the journal slot for these bytes.
    ///   - hostCeiling: the number of connections that the host is known to serve.
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
        let mayBeBrief = writer.mayGather && SharingPolicy.spreads(plan, hostCeiling: hostCeiling)
        var request = AttemptRequest(
            plan, connection: options.connection, mayBeBrief: mayBeBrief, needsProvenEnd: options.target.isStream)
        request.receiveBuffer = receiveBuffer
        services.transport.start(request, receiver: writer)
        return writer
    }

    /// Enters the end of an attempt in the host board, with what it shows about shared connections. Call it once for
    /// each attempt.
    func ended(_ writer: AttemptWriter, _ result: AttemptResult) {
        let plan = writer.plan
        services.board.ended(plan.url.origin, plan.sharing)
        let answer = SharingPolicy.Answer(
            result, shared: plan.sharesConnection, isStream: writer.isStream, promise: writer.promise)
        if let answer { services.board.answered(answer, from: plan.url.origin, after: writer.latency ?? .zero) }
    }

    /// Enters in the host board that a response over HTTP/2 was not a small file.
    func noteLongStream(_ writer: AttemptWriter) {
        if writer.isLongStream { services.board.answered(.long, from: writer.plan.url.origin) }
    }
}
