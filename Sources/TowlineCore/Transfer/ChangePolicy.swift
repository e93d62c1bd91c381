/// The action of a download whose file changed on the server after bytes of it were downloaded.
package enum ChangePolicy: String, Hashable, Sendable, CaseIterable {
    /// Starts over with the new version, if the response shows that it is one.
    case restart
    /// Fails with the error `changedOnServer` and keeps the bytes.
    case fail
    /// Starts over with whatever the server sends instead, even if it looks like an error.
    case accept
}
