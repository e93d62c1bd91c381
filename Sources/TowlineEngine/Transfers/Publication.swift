internal import TowlineCore

/// The last steps of a transfer, in background tasks: the complete file is compared with its checksums and gets its
/// final name.
struct Publication {
    /// The task that verifies or publishes the complete file; `nil` if none was started.
    private(set) var task: Task<Void, Never>?
    /// The options for publishing a complete small file or stream, which has no journal; `nil` if none is to be
    /// published. `TransferRun.run` publishes it itself, because the transfer waits for nothing else.
    var terms: PublishTerms?
    /// The published file, which becomes the result of the transfer; `nil` before publishing.
    var file: PublishedFile?

    /// Starts to compare the complete file with `checksums`. An event in the mailbox reports the result.
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

    /// Starts to publish the file, and an event reports the result. A file without a journal is published by
    /// `TransferRun.run` instead (`terms`), because that is fast.
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
