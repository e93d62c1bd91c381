/// The links of a response (`Link`, RFC 8288).
package struct LinkHeader: Hashable, Sendable {
    /// One link.
    package struct Link: Hashable, Sendable {
        /// The reference between `<` and `>`, as it came: resolve it against the URL of the response.
        package let target: String
        /// Names in lower case and values, in order; a parameter without a value has an empty one.
        package let parameters: [HTTPFields.Field]

        /// The value of the first parameter of that name: RFC 8288 §3.3 and §3.4 let the first `rel` and `title`
        /// count.
        package func value(named name: String) -> String? {
            parameters.first { HTTPFields.equalNames($0.name, name) }?.value
        }

        /// Whether the link says what `relation` is to the file itself. A link with an `anchor` speaks of something
        /// else.
        package func has(relation: String) -> Bool {
            guard value(named: "anchor") == nil, let relations = value(named: "rel") else { return false }
            return relations.split(separator: " ").contains { HTTPFields.equalNames(String($0), relation) }
        }

        /// RFC 6249 §3.1: 1 is tried first; 999,999 where nothing usable is said.
        package var priority: Int {
            guard let text = value(named: "pri"), let number = ASCII.number(text.utf8), (1...999_999).contains(number)
            else { return 999_999 }
            return Int(number)
        }
    }

    /// The links in order.
    package let links: [Link]

    /// Reads all `Link` lines. What makes no sense is skipped up to the next comma.
    package init(_ fields: HTTPFields) { links = fields.values(named: "Link").flatMap(Self.parse) }

    /// Mirrors of the same file (RFC 6249 §3), best first; equal priorities in the order they came.
    package var duplicates: [Link] {
        links.filter { $0.has(relation: "duplicate") }.enumerated()
            .sorted { ($0.element.priority, $0.offset) < ($1.element.priority, $1.offset) }
            .map(\.element)
    }

    /// Descriptions of the file: Metalink documents and signatures (RFC 6249 §4 and §5).
    package var descriptions: [Link] { links.filter { $0.has(relation: "describedby") } }

    private static func parse(_ value: String) -> [Link] {
        var scanner = FieldScanner(value)
        var links: [Link] = []
        while !scanner.isAtEnd {
            scanner.skipWhitespace()
            if scanner.skip("<") {
                let target = scanner.take { $0 != 0x3E }
                guard scanner.skip(">") else { return links }
                guard let parameters = parameters(&scanner) else { return links }
                links.append(Link(target: String(decoding: target, as: UTF8.self), parameters: parameters))
            }
            _ = scanner.take { $0 != 0x2C }
            _ = scanner.skip(",")
        }
        return links
    }

    /// `*( OWS ";" OWS [ token [ BWS "=" BWS ( token / quoted-string ) ] ] )`; `nil` if a quote is left open.
    private static func parameters(_ scanner: inout FieldScanner) -> [HTTPFields.Field]? {
        var parameters: [HTTPFields.Field] = []
        scanner.skipWhitespace()
        while scanner.skip(";") {
            scanner.skipWhitespace()
            guard let name = scanner.token() else { continue }
            scanner.skipWhitespace()
            var value = ""
            if scanner.skip("=") {
                scanner.skipWhitespace()
                if scanner.next == 0x22 {
                    guard let quoted = scanner.quotedString() else { return nil }
                    value = quoted
                } else {
                    let raw = scanner.take { $0 != 0x3B && $0 != 0x2C && $0 != 0x20 && $0 != 0x09 }
                    value = String(decoding: raw, as: UTF8.self)
                }
                scanner.skipWhitespace()
            }
            parameters.append(HTTPFields.Field(name: ASCII.lowercased(name), value: value))
        }
        return parameters
    }
}
