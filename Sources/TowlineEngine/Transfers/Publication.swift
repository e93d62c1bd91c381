internal import TowlineCore

/// The last steps of a transfer: a background task compares the complete file with its checksums, and another gives it
/// its final name.
struct Publication {
    /// The background task that compares the complete file with its checksums or gives it its final name; `nil` if none
    /// was started.
    private(set) var task: Task<Void, Never>?
    /// The options for publishing (renaming) a complete small file or stream without a journal; `nil` if none is to be
    /// published. `TransferRun.run` does that itself, because the transfer waits for nothing else.
    var terms: PublishTerms?
    /// The finished file under its final name, which becomes the result of the transfer; `nil` before that.
    var file: PublishedFile?

    /// Starts to compare the complete file with `checksums` in the background. An event in `mailbox`, the transfer's
    /// event queue, reports the result.
    mutating func verify(
        _ sink: any Sink, _ checksums: [Checksum], length: Int64, _ services: TransferServices,
        _ mailbox: TransferMailbox
    ) {
        task = services.begin {
            do throws(TowlineError) {
                let mismatches = try await sink.verify(checksums, length: length)
                // Bytes that another program removed are not wrong bytes of the server.
                if !mismatches.isEmpty { try sink.checkIntact(upTo: length) }
                mailbox.post(.storage(.verified(mismatches: mismatches), of: ObjectIdentifier(sink)))
            } catch {
                // The bytes were abandoned during the verification. The file is verified again when it is complete.
                guard error.code != .cancelled else { return }
                let cause = sink.loss(upTo: length) ?? error
                mailbox.post(.storage(TransferEvent(failure: cause), of: ObjectIdentifier(sink)))
            }
        }
    }

    /// Starts to give the complete file its final name in the background; an event in `mailbox` reports the result. For
    /// a file without a journal, only sets `terms`, and `TransferRun.run` publishes it.
    mutating func publish(
        _ part: OpenPart, _ terms: PublishTerms, _ services: TransferServices, _ mailbox: TransferMailbox
    ) {
        guard part.journal != nil else {
            self.terms = terms
            return
        }
        task = services.begin { mailbox.post(await part.sink.published(terms)) }
    }
}

extension Sink {
    /// Gives the complete file its final name, and returns the event that reports the finished file or the error to the
    /// transfer.
    func published(_ terms: PublishTerms) async -> TransferMailbox.Event {
        do throws(TowlineError) {
            return .published(try await publish(terms), of: ObjectIdentifier(self))
        } catch {
            return .storage(TransferEvent(failure: error), of: ObjectIdentifier(self))
        }
    }

    /// Returns the error if another program removed the part file or some of its first `length` bytes; otherwise `nil`.
    fileprivate func loss(upTo length: Int64) -> TowlineError? {
        do throws(TowlineError) { try checkIntact(upTo: length) } catch { return error.isPartLost ? error : nil }
        return nil
    }
}

extension TransferEvent {
    /// Creates the event for a failure of verifying or publishing: the download starts over if another program changed
    /// the part file, and fails otherwise.
    fileprivate init(failure error: TowlineError) {
        self = error.isPartLost ? .partDamaged(reason: error.message) : .storageFailed(error)
    }
}
