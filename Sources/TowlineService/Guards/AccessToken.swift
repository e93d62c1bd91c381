package import Foundation
package import Towline

/// The access token of clients over TCP: 256 random bits, in a file that only the owner of the service can read.
package struct AccessToken: Sendable {
    /// The token: 64 hexadecimal digits.
    package let text: String
    /// Name of the token file in the state directory.
    package static let fileName = "token"
    private static let advice = "Remove the file and restart towd to create a new token"

    /// Path of the token file.
    let path: String
    /// A message to the user if the token was replaced, because other users had access to its file.
    package let notice: String?

    /// Reads the token of a state directory. Creates a token if the file does not exist, or if other users have access
    /// to it: they may know the old token.
    ///
    /// - Throws: `diskPermission` if the file cannot be read or created, or if it belongs to another user;
    ///   `diskFailure` if the file contains no token.
    package init(in directory: URL) throws(TowlineError) {
        path = directory.appendingPathComponent(Self.fileName, isDirectory: false).path
        let file = PrivateFile(path: path, title: "access token file", advice: Self.advice)
        let isExposed = file.isExposed
        notice =
            isExposed
            ? """
            other users had access to the access token file \(TerminalSafeText.make(path)), so the token was replaced. \
            Programs need the new token, and browsers must sign in again
            """ : nil
        if !isExposed, let text = try file.text(limit: 80) {
            guard Secret.isValid(text) else {
                throw TowlineError(
                    .diskFailure,
                    "the access token file \(TerminalSafeText.make(path)) contains no valid token. \(Self.advice)")
            }
            self.text = text
            return
        }
        text = Secret.random()
        try file.replace(with: text)
    }

    /// Compares in constant time for equal lengths, so that the time does not reveal the token.
    func isEqual(to candidate: some StringProtocol) -> Bool {
        let (left, right) = (Array(text.utf8), Array(candidate.utf8))
        guard left.count == right.count else { return false }
        var difference: UInt8 = 0
        for index in left.indices { difference |= left[index] ^ right[index] }
        return difference == 0
    }
}
