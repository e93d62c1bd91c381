/// A short form of a download's identifier, as a user types it: its first or its last characters.
///
/// Downloads that were added together have the same first characters, so `tow list` shows the last ones.
package struct ShortDownloadID: Hashable, Sendable {
    private let digits: String

    /// The minimum number of characters that a user must type.
    package static let minimumLength = 4
    /// The number of last characters of an identifier that `tow list` shows.
    package static let shownLength = 6

    /// Parses 4 to 26 characters of an identifier in upper or lower case. Returns `nil` for any other text.
    package init?(_ text: some StringProtocol) {
        let digits = text.uppercased()
        guard (Self.minimumLength...26).contains(digits.utf8.count),
            digits.utf8.allSatisfy({ DownloadID.digits.contains($0) })
        else { return nil }
        self.digits = digits
    }

    /// Returns whether the identifier of the download begins or ends with these characters.
    package func matches(_ id: DownloadID) -> Bool {
        let name = id.description
        return name.hasSuffix(digits) || name.hasPrefix(digits)
    }
}
