/// The encoding of the bytes in the part file (the incomplete file on disk), which a response with a complete new file
/// would replace.
enum HeldKind: Hashable, Sendable {
    /// The part file (the incomplete file on disk) does not exist or has no bytes of the file.
    case nothing
    /// Bytes of the file as the server stores them, without a content coding.
    case identity
    /// Bytes of the file in a content coding, such as gzip. Ranges of them cannot be joined.
    case coded
}
