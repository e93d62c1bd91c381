/// The kind of a file's content, as far as it distinguishes the text of an error from a file.
package enum ContentKind: Hashable, Sendable {
    /// Content that is not text, or of an unknown type.
    case binary
    /// Text of another kind than the following ones.
    case text
    case json
    case xml
    /// A web page.
    case page

    /// Creates the kind that a media type names. Without a media type, and for `application/octet-stream`, the kind is
    /// `binary`.
    ///
    /// - Parameter mediaType: the media type in lower case, without parameters.
    package init(mediaType: String?) {
        guard let mediaType else {
            self = .binary
            return
        }
        let subtype = mediaType.drop { $0 != "/" }.dropFirst()
        if WebPage.isPage(mediaType: mediaType) {
            self = .page
        } else if subtype == "json" || subtype.hasSuffix("+json") {
            self = .json
        } else if subtype == "xml" || subtype.hasSuffix("+xml") {
            self = .xml
        } else {
            self = mediaType.hasPrefix("text/") || Self.textTypes.contains(String(subtype)) ? .text : .binary
        }
    }

    /// Creates the kind that the first bytes of a content suggest. Bytes that occur in no text, as in "MIME Sniffing"
    /// §3 of WHATWG, make the content binary. Empty content is binary.
    package init(firstBytes: [UInt8]) {
        let isBinary = firstBytes.contains { $0 < 0x20 && ![0x09, 0x0A, 0x0C, 0x0D, 0x1B].contains($0) }
        guard !isBinary, let first = firstBytes.first(where: { ![0x09, 0x0A, 0x0D, 0x20].contains($0) }) else {
            self = .binary
            return
        }
        if WebPage.isPage(firstBytes) == true {
            self = .page
        } else {
            self = first == 0x7B || first == 0x5B ? .json : first == 0x3C ? .xml : .text
        }
    }

    /// The subtypes of `application` whose content is text.
    private static let textTypes: Set<String> = [
        "javascript", "x-javascript", "ecmascript", "yaml", "x-yaml", "toml", "x-sh", "x-ndjson", "jsonl", "sql",
        "x-www-form-urlencoded", "graphql",
    ]
}
