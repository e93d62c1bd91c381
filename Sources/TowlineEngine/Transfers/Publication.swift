internal import TowlineCore

/// The verification and publishing of a complete file.
struct Publication {
    /// The task that verifies or publishes the file; `nil` if none was started.
    private(set) var task: Task<Void, Never>?
    /// The options for publishing a complete small file or stream, which has no journal; `nil` if none is to be
    /// published. `TransferRun.run` publishes it itself, because the transfer waits for nothing else.
    var terms: PublishTerms?
    /// The published file; `nil` before.
    var file: PublishedFile?

    /// Compares the checksums of the file with those in `checksums`. An event reports the result.
    mutating func verify(
        _ sink: any Sink, _ checksums: [Checksum], length: Int64, _ services: TransferServices,
        _ mailbox: TransferMailbox
    ) {
        task = services.begin {
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

    /// Publishes the file. An event reports the result. Publishing takes longer with a journal, and the file is long
    /// enough to be observed meanwhile.
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
    /// Publishes the file and returns the event that reports the result: the published file or the error.
    func published(_ terms: PublishTerms) async -> TransferMailbox.Event {
        do throws(TowlineError) {
            return .published(try await publish(terms), of: ObjectIdentifier(self))
        } catch {
            return .storage(.storageFailed(error), of: ObjectIdentifier(self))
        }
    }
}
