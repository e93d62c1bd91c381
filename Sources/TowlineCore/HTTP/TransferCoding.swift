/// The kind of `Transfer-Encoding` of a response, which decides how the end of the body is found (RFC 9112 §6.1, §6.3).
package enum TransferCoding: Hashable, Sendable {
    /// The field is absent: `Content-Length` or the end of the connection ends the body.
    case absent
    /// Only `identity`, the coding of RFC 2616 that changes nothing.
    case identity
    /// The coding `chunked`: the last chunk ends the body.
    case chunked
    /// Another coding without `chunked`: the end of the connection ends the body.
    case untilClose
    /// An unknown coding, or `chunked` before another coding: the body cannot be read.
    case unsupported

    /// Reads all `Transfer-Encoding` lines as one list. `chunked` may be repeated, because servers and gateways that
    /// each add the field apply the coding once.
    package init(_ fields: HTTPFields) {
        guard fields.has("Transfer-Encoding") else {
            self = .absent
            return
        }
        let members = fields.values(named: "Transfer-Encoding").flatMap { $0.utf8.split(separator: 0x2C) }
        let codings = members.map(Self.name).filter { !$0.isEmpty && $0 != "identity" }
        let others = codings.prefix { $0 != "chunked" }
        if codings.isEmpty {
            self = .identity
        } else if !others.allSatisfy(Self.decoded.contains)
            || codings[others.endIndex...].contains(where: { $0 != "chunked" })
        {
            self = .unsupported
        } else {
            self = others.count < codings.count ? .chunked : .untilClose
        }
    }

    /// The compressing transfer codings that libcurl decodes automatically. No request offers them, but some servers
    /// send them.
    private static let decoded: Set<String> = ["gzip", "x-gzip", "deflate", "br", "zstd"]

    private static func name(_ member: Substring.UTF8View) -> String {
        let isBlank: (UInt8) -> Bool = { $0 == 0x20 || $0 == 0x09 }
        let bytes = member.drop(while: isBlank).reversed().drop(while: isBlank).reversed()
        return String(decoding: bytes.map(ASCII.lowercased), as: UTF8.self)
    }
}
