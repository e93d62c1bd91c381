/// How much of an answer that nobody wants is read all the same, so that its connection can be used again
/// (RFC 9112 §9.3: a client that wants to reuse a connection must read the whole response).
package enum DrainPolicy {
    /// More than that takes longer than another connection.
    private static let most: Int64 = 16 << 10

    /// The most bytes of its body that are read; `nil`: it is too long, or ends only with its connection, and is closed at once.
    package static func limit(_ head: ResponseHead) -> Int64? {
        switch ContentLength.parse(head.fields) {
        case .length(let length): length <= most ? length : nil
        // Chunks and streams have an end of their own.
        case .absent: head.version == .http2 || head.fields.has("Transfer-Encoding") ? most : nil
        case .invalid: nil
        }
    }
}
