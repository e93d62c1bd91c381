/// A checksum that a server sent in a response, with the name of the header field that contained it.
package struct ServerChecksum: Hashable, Sendable, CustomStringConvertible {
    /// The name of the header field, as its specification writes it.
    package let field: String
    /// The checksum that the server sent.
    package let checksum: Checksum

    /// Creates a checksum with the name of its header field.
    package init(field: String, _ checksum: Checksum) {
        self.field = field
        self.checksum = checksum
    }

    /// `true` if the checksum covers the body of one response, not the file stored on the server. After a mismatch, the
    /// bytes are requested again, because they may have been damaged in transit; the checksum of a stored file would be
    /// the same in a second response.
    var isOfContent: Bool { field == DigestFields.contentDigest || field == DigestFields.contentMD5 }

    /// The checksum as text, for example `sha256:9f86d0…`.
    package var description: String { checksum.description }
}

/// A checksum of the file that a redirect leads to (`X-Linked-Etag` with `X-Linked-Size` of Hugging Face).
package struct LinkedChecksum: Hashable, Sendable {
    /// The checksum of the file that the redirect leads to.
    package let checksum: ServerChecksum
    /// The complete length of the file in bytes. The checksum is not used for a file of another length.
    package let length: Int64
}
