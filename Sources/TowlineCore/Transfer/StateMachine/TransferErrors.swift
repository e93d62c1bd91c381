/// Functions that create the errors of a transfer with long messages, such as checksum mismatches.
extension TowlineError {
    /// Returns the error for a source (URL) whose responses do not allow it to be used. `reason` is part of the
    /// message.
    static func unusable(_ url: HTTPURL, _ reason: String) -> TowlineError {
        TowlineError(.invalidResponse, "\(url): \(reason)")
    }

    /// Returns the error for a file that does not match the user's checksum. `values`: the expected and computed
    /// checksums.
    static func wrongByUser(_ url: HTTPURL, _ values: String, _ terms: TransferTerms) -> TowlineError {
        TowlineError(
            .checksumMismatch,
            "\(url): the downloaded file does not match the expected checksum: \(values). "
                + (terms.isStream
                    ? "The wrong bytes were already written to the output. Discard the output"
                    : "The file was not saved under its final name. Check the checksum, or download again"))
    }

    /// Returns the error for bytes that do not match a checksum from the server.
    ///
    /// - Parameters:
    ///   - subject: the subject of the error message, with its verb.
    ///   - field: the name of the field with the checksum; `nil` if unknown.
    ///   - values: the expected and computed checksums, which follow the field in the message.
    static func wrongByServer(
        _ url: HTTPURL, _ subject: String, _ field: String?, values: String = "", _ terms: TransferTerms
    ) -> TowlineError {
        let wayOut =
            terms.isStream
            ? "The bytes were already written to the output. Discard the output and download again"
            : "The file was not saved under its final name. Download again, or"
                + " \(Remedy.ignoredChecksums) if they may be wrong"
        return TowlineError(
            .checksumMismatch,
            "\(url): \(subject) not match the checksum that the server sent\(named(field))\(values). \(wayOut)")
    }

    /// Returns the name of a response field in parentheses, for error messages; empty if it is unknown.
    static func named(_ field: String?) -> String { field.map { " (\($0))" } ?? "" }

    /// Returns the error for a download to a stream whose length nothing proves: the bytes are written and may be
    /// incomplete.
    static func unprovenStream(_ url: HTTPURL, _ length: Int64) -> TowlineError {
        TowlineError(
            .lengthUnproven,
            "\(url): the server ended the response after \(ByteCountText.format(length)) without sending its length"
                + " and without closing TLS (close_notify), so the output may be incomplete."
                + " To verify it, \(Remedy.checksum). With a \(Remedy.fileTarget), another request confirms the length")
    }

    /// Returns the error for a file of unknown length if each of several (`count`) responses ended at another length.
    static func differentLengths(_ url: HTTPURL, _ count: Int) -> TowlineError {
        TowlineError(
            .lengthUnproven,
            "\(url): each of \(count) responses ended at another length, and the server does not send the length of"
                + " the file, so the file may be incomplete. To verify the file, \(Remedy.checksum), or try again later"
        )
    }

    /// Returns the error for a file that changed on the server during a download whose restart the user forbade.
    static func changed(_ url: HTTPURL, _ reason: String) -> TowlineError {
        TowlineError(
            .changedOnServer,
            "\(url): \(reason). The bytes downloaded so far are kept."
                + " To discard them, \(Remedy.startingOver)")
    }

    /// Returns the error for a download to a stream, such as standard output, that would have to restart. `isChange`:
    /// `true` if the file changed on the server.
    static func cannotRestartStream(_ url: HTTPURL, _ reason: String, isChange: Bool) -> TowlineError {
        TowlineError(
            isChange ? .changedOnServer : .invalidResponse,
            "\(url): \(reason)."
                + " The download cannot restart, because bytes were already written to the output."
                + " Discard the output and download again")
    }

    /// Returns the error for a download that has restarted at the first byte more often than the retry limit (`most`)
    /// allows.
    static func tooManyRestarts(_ url: HTTPURL, _ most: Int, _ reason: String) -> TowlineError {
        let count = most == 1 ? "1 restart" : "\(most) restarts"
        return TowlineError(
            .transient,
            "\(url): the download failed after \(count) from the beginning. Reason for the last restart: \(reason)")
    }

    /// Returns the error for a file that is longer than the user's limit `most`. `length`: its length; `nil` if
    /// unknown.
    static func tooLarge(_ length: Int64?, _ terms: TransferTerms, _ most: Int64) -> TowlineError {
        let size = length.map { "\($0) bytes" } ?? "more than the limit"
        return TowlineError(
            .fileTooLarge,
            "the file has \(size), and the limit is \(most) bytes. "
                + (terms.isStream ? "The output is incomplete. " : "") + "To download it, \(Remedy.largerFile)")
    }
}

extension RangeLedger {
    /// Returns an error if the written bytes or the length of the file, as known or as a response announced it
    /// (`announced`), exceed the user's limit (`--max-size`); otherwise `nil`.
    func tooLarge(_ announced: Int64?, _ terms: TransferTerms) -> TowlineError? {
        guard let most = terms.options.maximumSize else { return nil }
        let length = max(completeLength ?? 0, announced ?? 0)
        guard max(length, written.ranges.last?.upperBound ?? 0) > most else { return nil }
        return .tooLarge(length > most ? length : nil, terms, most)
    }
}
