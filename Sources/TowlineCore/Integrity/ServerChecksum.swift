/// A checksum that a response carries, and the field that it came in.
package struct ServerChecksum: Hashable, Sendable, CustomStringConvertible {
    /// The name of the field, as its specification writes it.
    package let field: String
    /// The checksum.
    package let checksum: Checksum

    /// Makes one.
    package init(field: String, _ checksum: Checksum) {
        self.field = field
        self.checksum = checksum
    }

    /// Returns whether the field is about the content of one response, which a flipped bit on the way makes wrong. Such
    /// bytes are requested a second time. Other fields come from a store, and a second response has the same ones.
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
