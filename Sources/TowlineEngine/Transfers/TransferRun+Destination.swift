internal import TowlineCore

/// The functions of `TransferRun` that inspect the files at its destination and prepare the part file for the response.
extension TransferRun {
    var part: OpenPart? { destination.part }

    /// Inspects the files at the destination, and returns the actions for the first request. Returns none if no request
    /// is needed (`ending` is then set), or if an existing file must be read first.
    func begin() throws(TowlineError) -> [TransferAction] {
        try options.checkFields()
        var held: HeldDownload?
        switch options.target {
        case .file(let directory, let name):
            if destination.outcome == nil { held = try destination.survey(directory, name) }
            if let existing = destination.existing { machine.existing = existing }
            if destination.proof != nil { return [] }
            if destination.outcome != nil {
                attempts.abandonHeadStart()
                ending = .finished
                return []
            }
        case .stream(let output): try destination.openStream(output)
        }
        machine.earlier = part?.earlier
        if held == nil, let start = attempts.takeHeadStart() {
            turn.noteRequest(at: start.startedAt, answersBefore: start.answersBefore)
            return decide(.takenOver(start.writer.plan, startedAt: start.startedAt), context())
        }
        attempts.abandonHeadStart()
        return decide(.begin(held), context())
    }

    /// Creates or opens the part file for a response, and reports the result to the state machine as an event.
    func prepare(_ plan: PreparePlan) {
        if options.target.isStream { return step(.prepared) }
        prepared(plan) { () throws(TowlineError) in try destination.prepare(plan, isAtHand: attempts.isAtHand) }
    }

    /// Changes the part file with `body`, and reports the result to the state machine.
    func prepared(_ plan: PreparePlan?, _ body: () throws(TowlineError) -> Destination.Preparation) {
        let replacements = destination.changes.replacements
        do throws(TowlineError) {
            let preparation = try body()
            if destination.changes.replacements > replacements { resetCheckpoints() }
            machine.earlier = part?.earlier
            switch preparation {
            case .ready: step(.prepared)
            case .resume(let held): step(.begin(held))
            case .done: step(.stop)
            case .needsProof: break
            case .needsName: turn.waitingForName = plan
            }
        } catch {
            step(.storageFailed(error))
        }
    }

    /// Waits until all earlier entries of the batch have their file names, and then creates or opens the part file for
    /// a response.
    nonisolated(nonsending) func prepareInTurn(_ plan: PreparePlan) async {
        await destination.turn()
        // The wait has a time limit, so earlier entries may still have no name.
        if case .file(let directory, nil) = options.target {
            prepared(plan) { () throws(TowlineError) in
                try destination.openNumbered(directory, plan, isAtHand: attempts.isAtHand)
            }
        }
        if destination.proof == nil { concludeCompleteResponse() }
    }

    // MARK: Checksums of existing files

    /// The minimum length in bytes of an existing file for a notice to the user before its checksum is computed.
    private static let longProof: Int64 = 64 << 20

    /// Computes the checksum of each existing file that may be the requested one, and then continues the transfer.
    nonisolated(nonsending) func prove() async {
        while let next = destination.proof.take() {
            do throws(TowlineError) {
                try await compareChecksum(next)
                if let plan = next.plan {
                    if destination.outcome == nil { prepare(plan) } else { step(.stop) }
                } else {
                    perform(try begin())
                    takeTurn()
                }
            } catch {
                let isStopped = error.code == .cancelled
                if next.plan != nil {
                    step(isStopped ? .stop : .storageFailed(error))
                } else {
                    attempts.abandonHeadStart()
                    ending = isStopped ? .stopped : .failed(error)
                }
            }
        }
        if turn.waitingForName == nil { concludeCompleteResponse() }
    }

    private nonisolated(nonsending) func compareChecksum(_ proof: ExistingFileProof) async throws(TowlineError) {
        if proof.length >= Self.longProof {
            let name = proof.checksum.algorithm.rawValue
            destination.tell(
                .info, .disk, "the destination file already exists. Reading the file to check its \(name) checksum")
        }
        tellProgress(of: proof)
        let result = await read(proof)
        if case .failure(let error) = result, error.code == .cancelled { throw stopped }
        try destination.conclude(proof, result)
    }

    private nonisolated(nonsending) func read(_ proof: ExistingFileProof) async -> Result<FileProof, TowlineError> {
        let (storage, link) = (services.storage, destination.key.link)
        let reading = services.begin { () async -> Result<FileProof, TowlineError> in
            do throws(TowlineError) {
                return .success(try await storage.prove(proof.place, link: link, checksum: proof.checksum))
            } catch {
                return .failure(error)
            }
        }
        mailbox.whenStopped { reading.cancel() }
        defer { mailbox.whenStopped(nil) }
        return await reading.value
    }
}
