/// The kind of bytes that a complete new file would replace.
enum HeldKind: Hashable, Sendable {
    /// There are no such bytes.
    case nothing
    /// Bytes as the server stores them, without a content coding.
    case identity
    /// Bytes in a content coding, such as gzip. Ranges of them cannot be joined.
    case coded
}
