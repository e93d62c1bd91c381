/// The limit for reading an unwanted response, such as a redirect or an error page, to its end, so that its connection
/// can be reused (RFC 9112 §9.3: a client that wants to reuse a connection must read the whole response).
package enum DrainPolicy {
    /// The largest body, in bytes, that takes no longer to read than a new connection takes to open.
    private static let most: Int64 = 16 << 10

    /// Returns the maximum number of body bytes to read of an unwanted response with this head. `nil`: the body is too
    /// long, or ends only with its connection, so the connection is closed at once.
    package static func limit(_ head: ResponseHead) -> Int64? {
        switch ContentLength.parse(head.fields) {
        case .length(let length): length <= most ? length : nil
        // Chunks and streams end without closing the connection.
        case .absent: head.version == .http2 || head.fields.has("Transfer-Encoding") ? most : nil
        case .invalid: nil
        }
    }
}
