/// The links in a pasted text.
extension Wire {
    /// The links of a text that a user pasted, typed or saved as a list.
    package struct FoundLinks: Hashable, Sendable, Codable {
        /// A line without a link.
        package struct Line: Hashable, Sendable, Codable {
            /// The number of the line, from 1.
            package var number: Int
            /// The text of the line, without white space around it.
            package var text: String

            /// Creates a value.
            package init(number: Int, text: String) {
                self.number = number
                self.text = text
            }
        }

        /// The links, in order and without duplicates.
        package var links: [String] = []
        /// The lines without a link, except empty lines and lines that begin with `#`. An answer of the API contains
        /// the first `maximumLines`.
        package var linesWithoutLink: [Line] = []
        /// The number of all lines without a link.
        package var linesWithoutLinkCount = 0
        /// The schemes of links that are not supported, such as `magnet`, in lower case.
        package var unsupportedSchemes: [String] = []
        /// The header fields of the first command of curl or wget that has any.
        package var headers: [Header] = []

        /// The maximum number of lines in an answer of the API.
        package static let maximumLines = 1000

        /// Creates a value without links.
        package init() {}
    }

    /// A request to find the links of a text.
    package struct PastedText: Hashable, Sendable, Codable {
        /// The maximum size of the request as JSON, in bytes: 4 MiB of text in which every character is escaped.
        package static let maximumSize = 8 << 20

        /// The text.
        package var text: String

        private enum CodingKeys: String, CodingKey, CaseIterable { case text }

        /// Creates a value.
        package init(text: String) { self.text = text }

        /// Decodes a value. An unknown field is an error.
        package init(from decoder: any Decoder) throws {
            text = try decoder.strictContainer(CodingKeys.self).decode(String.self, forKey: .text)
        }
    }
}
