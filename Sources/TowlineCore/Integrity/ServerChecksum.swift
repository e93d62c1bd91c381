/// A checksum in a response, and its field.
package struct ServerChecksum: Hashable, Sendable, CustomStringConvertible {
    /// The name of the field, as its specification writes it.
    package let field: String
    /// The checksum.
    package let checksum: Checksum

    /// Creates a checksum.
    package init(field: String, _ checksum: Checksum) {
        self.field = field
        self.checksum = checksum
    }

    /// Returns whether the field covers the content of one response. A bit error in transit makes that content wrong,
    /// so the bytes are requested again. Other fields are stored on the server, and a second response has the same
    /// values.
    var isOfContent: Bool { field == DigestFields.contentDigest || field == DigestFields.contentMD5 }

    /// The checksum as text.
    package var description: String { checksum.description }
}

/// A checksum of the file that a redirect leads to (`X-Linked-Etag` with `X-Linked-Size` of Hugging Face).
package struct LinkedChecksum: Hashable, Sendable {
    /// The checksum.
    package let checksum: ServerChecksum
    /// The complete length of the file. The checksum is not used for a file of another length.
    package let length: Int64
}
