/// The maximum file size that the user accepts (`--max-size`).
extension TransferStateMachine {
    /// Returns an error if the announced length or the written bytes exceed the maximum size; otherwise `nil`.
    func tooLarge() -> TowlineError? {
        guard let most = terms.maximumSize else { return nil }
        let length = max(ledger.completeLength ?? 0, representation?.completeLength ?? 0)
        guard max(length, ledger.written.ranges.last?.upperBound ?? 0) > most else { return nil }
        let size = length > most ? "\(length) bytes" : "more than the limit"
        return TowlineError(
            .fileTooLarge,
            "the file has \(size), and the limit is \(most) bytes (--max-size). "
                + (terms.isStream ? "The output is incomplete. " : "") + "Raise the limit to download the file")
    }
}
