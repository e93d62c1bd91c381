internal import TowlineCore

/// The actions that the state machine decides, such as sending a request or publishing the file.
extension TransferRun {
    func perform(_ actions: [TransferAction]) {
        for action in actions { perform(action) }
    }

    private func perform(_ action: TransferAction) {
        switch action {
        case .start(let plan): start(plan)
        case .cancel(let id): if delivered != id { services.transport.cancel(id) }
        case .shrink(let id, let end): writer(id)?.shrink(to: end)
        case .hold(let id, let offset, let time): writer(id)?.hold.wait(at: offset, for: time)
        case .proceed(let id): proceed(id)
        case .prepare(let plan): prepare(plan)
        case .learn(let representation, let checksums): destination.learn(representation, checksums)
        case .withdraw(let range):
            part?.sink.forgetHashed()
            destination.storing { () throws(TowlineError) in try part?.journal?.withdraw(range) }
        case .verify(let checksums, let length): verify(checksums, length)
        case .setAside: destination.setAside()
        case .publish(let length, let modified): publish(length, modified)
        case .notice(let notice): observer?.noticed(notice)
        case .report(let report, let origin): services.record(report, of: origin, from: options.url.origin)
        case .finish(let ending):
            if ending == .upToDate { destination.confirmExisting() }
            self.ending = ending
        }
    }

    // MARK: Attempts

    /// Returns the response receiver of a running attempt; `nil` if the attempt has ended.
    func writer(_ id: AttemptID) -> AttemptWriter? { writers.first { $0.plan.id == id } }

    /// Releases the journal slot with which an attempt records its written bytes, so that another attempt can use it.
    func giveBackSlot(_ id: AttemptID) {
        guard let index = slots.firstIndex(where: { $0.id == id }) else { return }
        part?.journal?.release(slots.remove(at: index).slot)
    }

    private func start(_ plan: AttemptPlan) {
        var slot: (any JournalSlot)?
        if plan.joinsDirectly, !plan.isComparison {
            destination.storing { () throws(TowlineError) in
                slot = try part?.journal?.claimSlot(at: plan.lease.lowerBound)
            }
        }
        if let slot { slots.append((plan.id, slot)) }
        if writers.isEmpty {
            noteRequest(at: services.now, answersBefore: services.board.answers(of: plan.url.origin))
        }
        writers.append(
            launcher.launch(
                plan, sink: plan.joinsDirectly ? part?.sink : nil, slot: slot, limiters: [limiter, services.limiter],
                hostCeiling: services.board.ceiling(plan.url.origin), receiveBuffer: receiveBuffer))
    }

    /// The size in bytes of the kernel's receive buffer for a new connection: its share of the bytes of a quarter of a
    /// second at the rate limit; `nil` without a limit. More bytes would be sent for nothing when a response is cut.
    private var receiveBuffer: Int? {
        guard isLimited, let rate = [limiter.rate, services.limiter.rate].filter({ $0 > 0 }).min() else { return nil }
        let share = rate / 4 / Int64(max(1, options.connections ?? 1))
        return Int(min(max(share, 128 << 10), 4 << 20))
    }

    private func proceed(_ id: AttemptID) {
        guard let writer = writer(id), let part, let lease = machine.response(of: id) else { return }
        var slot: (any JournalSlot)?
        destination.storing { () throws(TowlineError) in slot = try part.journal?.claimSlot(at: lease.lowerBound) }
        // An earlier slot of this attempt belongs to a part file that was abandoned.
        slots.removeAll { $0.id == id }
        if let slot { slots.append((id, slot)) }
        writer.attach(sink: part.sink, slot: slot, lease: lease.clipped(to: options.maximumSize))
        if delivered != id { services.transport.proceed(id) }
    }

    // MARK: Finishing

    private func verify(_ checksums: [Checksum], _ length: Int64) {
        guard let sink = part?.sink else { return }
        let mailbox = mailbox
        storageTask = services.begin {
            do throws(TowlineError) {
                let mismatches = try await sink.verify(checksums, length: length)
                mailbox.post(.storage(.verified(mismatches: mismatches), of: ObjectIdentifier(sink)))
            } catch {
                // The bytes were abandoned during the verification. The file is verified again when it is complete.
                guard error.code != .cancelled else { return }
                mailbox.post(.storage(.storageFailed(error), of: ObjectIdentifier(sink)))
            }
        }
    }

    private func publish(_ length: Int64, _ modified: HTTPDate?) {
        guard let sink = part?.sink else { return }
        let terms = PublishTerms(
            existing: options.existing, durable: options.durable, length: length,
            modified: modified?.secondsSince1970,
            version: destination.record.map { PublishedVersion(of: $0.representation, from: $0.resolved) })
        // Publishing takes longer with a journal, and the file is long enough to be observed meanwhile.
        guard part?.journal != nil else {
            publishing = terms
            return
        }
        let mailbox = mailbox
        storageTask = services.begin { mailbox.post(await sink.published(terms)) }
    }
}

extension Sink {
    /// Publishes the file and returns the event that reports the result: the published file or the error.
    func published(_ terms: PublishTerms) async -> TransferMailbox.Event {
        do throws(TowlineError) {
            return .published(try await publish(terms), of: ObjectIdentifier(self))
        } catch {
            return .storage(.storageFailed(error), of: ObjectIdentifier(self))
        }
    }
}

extension ByteRange {
    /// Returns the range without the bytes beyond offset `most` (the size limit), except the first, which shows that
    /// the file is longer; `nil`: no limit.
    fileprivate func clipped(to most: Int64?) -> ByteRange {
        guard let most, most < .max else { return self }
        return ByteRange(lowerBound, max(lowerBound, min(upperBound, most + 1)))
    }
}
