/// One received request.
package struct RequestInfo: Sendable {
    /// The number of the connection; the server's first connection is 0.
    package var connection: Int
    /// The number of the request on its resource; the first is 0.
    package var index: Int
    /// The number of requests of the resource that are being answered, including this one.
    package var concurrent: Int
    /// The method.
    package var method: String
    /// The original target: origin form, or absolute form to a proxy.
    package var target: String
    /// The fields in order, names with their original case.
    package var fields: [(String, String)]
    /// `true` for a request over TLS.
    package var isTLS: Bool
    /// `true` for a request over HTTP/2.
    package var isHTTP2: Bool

    /// Creates a request.
    package init(
        connection: Int, index: Int = 0, concurrent: Int = 1, method: String = "GET", target: String,
        fields: [(String, String)], isTLS: Bool = false, isHTTP2: Bool = false
    ) {
        self.connection = connection
        self.index = index
        self.concurrent = concurrent
        self.method = method
        self.target = target
        self.fields = fields
        self.isTLS = isTLS
        self.isHTTP2 = isHTTP2
    }

    /// The path of the target.
    package var path: String {
        var rest = Substring(target)
        if !rest.hasPrefix("/"), let scheme = rest.firstRange(of: "://") {
            rest = rest[scheme.upperBound...]
            rest = rest.firstIndex(of: "/").map { rest[$0...] } ?? "/"
        }
        return String(rest.prefix { $0 != "?" })
    }

    /// The query of the target without its question mark; `nil` without a query.
    package var query: String? {
        target.firstIndex(of: "?").map { String(target[target.index(after: $0)...]) }
    }

    /// Returns the value of the first field with the given name, ignoring case, or `nil`.
    package func field(_ name: String) -> String? {
        let lowercase = name.lowercased()
        return fields.first { $0.0.lowercased() == lowercase }?.1
    }

    /// The meaning of a `Range` field.
    package enum RangeRequest: Sendable, Equatable {
        /// The field is absent, is not of the form `bytes=a-b`, `bytes=a-` or `bytes=-n`, or requests several
        /// ranges: the server ignores it (RFC 9110 §14.2).
        case none
        /// These bytes.
        case range(Range<Int64>)
        /// The representation contains none of the requested bytes.
        case unsatisfiable
    }

    /// Returns the requested range of a representation with the given length in bytes (RFC 9110 §14.1.2).
    package func range(ofLength length: Int64) -> RangeRequest {
        guard let field = field("Range"), field.hasPrefix("bytes=") else { return .none }
        let parts = field.dropFirst(6).split(separator: "-", maxSplits: 1, omittingEmptySubsequences: false)
        guard parts.count == 2 else { return .none }
        if parts[0].isEmpty {
            guard let count = Int64(parts[1]), count >= 0 else { return .none }
            return count == 0 || length == 0 ? .unsatisfiable : .range(max(0, length - count)..<length)
        }
        guard let first = Int64(parts[0]), first >= 0 else { return .none }
        guard let last = parts[1].isEmpty ? Int64.max - 1 : Int64(parts[1]), last >= first else { return .none }
        return first >= length ? .unsatisfiable : .range(first..<min(last + 1, length))
    }
}
