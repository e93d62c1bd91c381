internal import TowlineCore

/// Whether a file that is there already is the one that was asked for, by its checksum.
extension TransferRun {
    /// What is to be read, and what follows.
    struct Proof {
        let place: Place
        let checksum: Checksum
        let length: Int64
        /// What was to be created when the file was found; `nil`: no server has been asked yet.
        let plan: PreparePlan?
        /// It is known to be this download; `nil`: it may be anything.
        let finished: PublishedFile?
    }

    /// Reading fewer bytes is not worth a word.
    private static let long: Int64 = 64 << 20

    /// Reads the file, and goes on with the answer that waits for it.
    nonisolated(nonsending) func prove(_ proof: Proof) async {
        guard let plan = proof.plan else { return }
        do throws(TowlineError) {
            try await settle(proof)
            if early != nil { return leaveAlone() }
            try create(proof.place, plan)
            step(.prepared)
        } catch {
            // It was stopped, which is the next that it hears.
            guard error.code != .cancelled else { return }
            step(.storageFailed(error))
        }
    }

    /// Reads the file. If it is the one, `early` says so; if not, and nothing may take its place, this throws.
    nonisolated(nonsending) func settle(_ proof: Proof) async throws(TowlineError) {
        let (place, checksum) = (proof.place, proof.checksum)
        if proof.length >= Self.long {
            tell(
                .info, .disk, "there already; reading it to compare its \(checksum.algorithm.rawValue)"
            )
        }
        let (storage, source) = (services.storage, source)
        let reading = Task { () async -> Result<PublishedFile?, TowlineError> in
            do throws(TowlineError) {
                guard let finished = proof.finished else {
                    return .success(
                        try await storage.adopt(place, source: source, checksums: [checksum], length: proof.length))
                }
                guard let mismatch = try await storage.mismatches([checksum], at: place).first else {
                    return .success(finished)
                }
                throw TowlineError(
                    .checksumMismatch,
                    "\(place.path) is there already and does not match the checksum: \(mismatch); --if-exists overwrite"
                        + " fetches it again")
            } catch {
                return .failure(error)
            }
        }
        mailbox.whenStopped { reading.cancel() }
        let result = await reading.value
        mailbox.whenStopped(nil)
        if case .failure(let error) = result, error.code == .cancelled { throw stopped }
        if let file = try result.get() {
            observer?.noticed(.verified([checksum]))
            early = .alreadyThere(file)
        } else if options.existing == .fail {
            throw Self.occupied(place, checksum)
        }
    }
}
