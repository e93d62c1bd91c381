internal import TowlineCore

/// Whether a file that is there already is the one that was asked for, by its checksum.
extension TransferRun {
    /// What is to be read, and what follows. A class: every transfer has room for one, and hardly any needs it.
    final class Proof: Sendable {
        let place: Place
        let checksum: Checksum
        let length: Int64
        /// What was to be created when the file was found; `nil`: no server has been asked yet.
        let plan: PreparePlan?
        /// It is known to be this download; else it may be anything.
        let isKnown: Bool

        init(place: Place, checksum: Checksum, length: Int64, plan: PreparePlan?, isKnown: Bool) {
            self.place = place
            self.checksum = checksum
            self.length = length
            self.plan = plan
            self.isKnown = isKnown
        }
    }

    /// Reading fewer bytes is not worth a word.
    private static let long: Int64 = 64 << 20

    /// Reads what `begin` or the answer that waits has met, and goes on from there.
    nonisolated(nonsending) func prove() async {
        while let next = proof.take() {
            do throws(TowlineError) {
                try await settle(next)
                if let plan = next.plan {
                    if early == nil { prepare(plan) } else { leaveAlone() }
                } else {
                    perform(try begin())
                    takeTurn()
                }
            } catch {
                let isStopped = error.code == .cancelled
                if next.plan != nil {
                    step(isStopped ? .stop : .storageFailed(error))
                } else {
                    abandonHeadStart()
                    ending = isStopped ? .stopped : .failed(error)
                }
            }
        }
        if waitingForName == nil { concludeDelivered() }
    }

    /// Reads the file. If it is the one, `early` says so; if not, and there may be no other beside it, this throws.
    nonisolated(nonsending) func settle(_ proof: Proof) async throws(TowlineError) {
        let name = proof.checksum.algorithm.rawValue
        if proof.length >= Self.long {
            tell(.info, .disk, "the destination file already exists. Reading the file to check its \(name) checksum")
        }
        tellProgress(of: proof)
        switch await read(proof) {
        case .success(.proven(let file)):
            observer?.noticed(.verified([proof.checksum]))
            early = options.existing == .update ? .upToDate(file) : .alreadyThere(file)
        case .failure(let error) where error.code == .cancelled: throw stopped
        // Whatever it is: there is another name for the download, or the download takes its place.
        case _ where [.rename, .update].contains(options.existing): refuted.append(proof.place)
        case .failure(let error): throw error
        case .success(.refuted(nil)):
            throw TowlineError(
                .destinationExists,
                "\(proof.place.path) was changed or removed by another program while Towline read it to compare its"
                    + " checksum, so the download stopped. Start the download again")
        case .success(.refuted(let mismatch?)) where proof.isKnown:
            throw TowlineError(
                .checksumMismatch,
                "\(proof.place.path) already exists and does not match the checksum: \(mismatch)."
                    + " Use --if-exists overwrite to download the file again")
        case .success(.refuted):
            throw TowlineError(
                .destinationExists,
                "\(proof.place.path) already exists and does not match the expected \(name) checksum, so it was not"
                    + " replaced. Remove the file, or use --if-exists overwrite or rename")
        }
    }

    private nonisolated(nonsending) func read(_ proof: Proof) async -> Result<FileProof, TowlineError> {
        let (storage, source) = (services.storage, source)
        let reading = services.begin { () async -> Result<FileProof, TowlineError> in
            do throws(TowlineError) {
                return .success(try await storage.prove(proof.place, source: source, checksum: proof.checksum))
            } catch {
                return .failure(error)
            }
        }
        mailbox.whenStopped { reading.cancel() }
        defer { mailbox.whenStopped(nil) }
        return await reading.value
    }
}
