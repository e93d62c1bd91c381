/// The limit for reading an unwanted response, such as a redirect or an error page, to its end, so that its connection
/// can be reused (RFC 9112 §9.3: a client that wants to reuse a connection must read the whole response).
package enum DrainPolicy {
    /// The maximum length in bytes of an unwanted body that is read to its end: reading it takes no longer than to open
    /// a new connection.
    private static let most: Int64 = 16 << 10

    /// Returns the maximum number of body bytes to read of an unwanted response with this head. `nil`: the body is too
    /// long, or ends only with its connection, so the connection is closed immediately.
    package static func limit(_ head: ResponseHead) -> Int64? {
        switch ContentLength.parse(head.fields) {
        case .length(let length): length <= most ? length : nil
        // Chunks and streams end without closing the connection.
        case .absent: head.version == .http2 || head.fields.has("Transfer-Encoding") ? most : nil
        case .invalid: nil
        }
    }
}
