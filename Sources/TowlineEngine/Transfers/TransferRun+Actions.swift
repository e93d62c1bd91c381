internal import TowlineCore

/// The functions of `TransferRun` that perform the actions that `TransferStateMachine` decides, such as sending a
/// request or publishing the file.
extension TransferRun {
    func perform(_ actions: [TransferAction]) {
        for action in actions { perform(action) }
    }

    private func perform(_ action: TransferAction) {
        switch action {
        case .start(let plan): start(plan)
        case .cancel(let id): attempts.cancel(id)
        case .shrink(let id, let end): attempts.writer(id)?.shrink(to: end)
        case .hold(let id, let offset, let time): attempts.writer(id)?.flow.hold(at: offset, for: time)
        case .proceed(let id): proceed(id)
        case .prepare(let plan): prepare(plan)
        case .learn(let representation, let checksums): destination.learn(representation, checksums)
        case .withdraw(let range):
            part?.sink.forgetHashed()
            destination.withdraw(range)
        case .adoptPart: destination.adoptPart()
        case .removeEarlier: destination.removeEarlier()
        case .resumeEarlier(let isOpen):
            prepared(nil) { () throws(TowlineError) in try destination.resumeEarlier(isOpen: isOpen) }
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

    private func start(_ plan: AttemptPlan) {
        let slot = plan.joinsDirectly && !plan.isComparison ? claimSlot(at: plan.lease.lowerBound) : nil
        if attempts.writers.isEmpty {
            turn.noteRequest(at: services.now, answersBefore: services.board.answers(of: plan.url.origin))
        }
        attempts.start(plan, part, slot)
    }

    private func proceed(_ id: AttemptID) {
        guard let writer = attempts.writer(id), let part, let lease = machine.response(of: id) else { return }
        attempts.proceed(writer, part, claimSlot(at: lease.lowerBound), lease)
    }

    private func claimSlot(at offset: Int64) -> (any JournalSlot)? {
        var slot: (any JournalSlot)?
        destination.storing { () throws(TowlineError) in slot = try part?.journal?.claimSlot(at: offset) }
        return slot
    }

    // MARK: Finishing

    private func verify(_ checksums: [Checksum], _ length: Int64) {
        guard let sink = part?.sink else { return }
        publication.verify(sink, checksums, length: length, services, mailbox)
    }

    private func publish(_ length: Int64, _ modified: HTTPDate?) {
        guard let part else { return }
        let terms = PublishTerms(
            existing: options.existing, isUsersName: destination.isUsersName, durable: options.durable, length: length,
            modified: modified?.secondsSince1970, link: destination.key.link,
            version: destination.record.map { PublishedVersion(of: $0.representation, from: $0.resolved) })
        publication.publish(part, terms, services, mailbox)
    }
}
