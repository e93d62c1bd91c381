/// What a person types of a name: its first or its last characters.
///
/// Downloads that were added together begin alike, so that the end is what tells them apart; `tow list` shows it.
package struct ShortDownloadID: Hashable, Sendable {
    private let digits: String

    /// Fewer characters mean nothing.
    package static let minimumLength = 4
    /// What lists show.
    package static let shownLength = 6

    /// Reads 4 to 26 digits of a name, upper or lower case; `nil` if it is nothing of the kind.
    package init?(_ text: some StringProtocol) {
        let digits = text.uppercased()
        guard (Self.minimumLength...26).contains(digits.utf8.count),
            digits.utf8.allSatisfy({ DownloadID.digits.contains($0) })
        else { return nil }
        self.digits = digits
    }

    /// Whether it is that download's.
    package func matches(_ id: DownloadID) -> Bool {
        let name = id.description
        return name.hasSuffix(digits) || name.hasPrefix(digits)
    }
}
