/// One request as it came over the wire.
package struct RequestInfo: Sendable {
    /// The number of its connection; the server's first is 0.
    package var connection: Int
    /// The number of the request on its resource; the first is 0.
    package var index: Int
    /// How many requests of the resource are being answered, this one included.
    package var concurrent: Int
    /// The method.
    package var method: String
    /// The target as it came: origin form, or absolute form to a proxy.
    package var target: String
    /// The fields in order, names as they came.
    package var fields: [(String, String)]
    /// Whether it came over TLS.
    package var isTLS: Bool
    /// Whether it came over HTTP/2.
    package var isHTTP2: Bool

    /// A request.
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

    /// The target's path.
    package var path: String {
        var rest = Substring(target)
        if !rest.hasPrefix("/"), let scheme = rest.firstRange(of: "://") {
            rest = rest[scheme.upperBound...]
            rest = rest.firstIndex(of: "/").map { rest[$0...] } ?? "/"
        }
        return String(rest.prefix { $0 != "?" })
    }

    /// The target's query, without its question mark; `nil` if there is none.
    package var query: String? {
        target.firstIndex(of: "?").map { String(target[target.index(after: $0)...]) }
    }

    /// The value of the first field with that name, compared without case.
    package func field(_ name: String) -> String? {
        let lowercase = name.lowercased()
        return fields.first { $0.0.lowercased() == lowercase }?.1
    }

    /// What a `Range` field asks for.
    package enum RangeRequest: Sendable, Equatable {
        /// There is none, it is not of the form `bytes=a-b`, `bytes=a-` or `bytes=-n`, or it asks for several
        /// ranges: it is ignored (RFC 9110 §14.2).
        case none
        /// These bytes.
        case range(Range<Int64>)
        /// None of the bytes asked for exist.
        case unsatisfiable
    }

    /// What is asked of a representation of that length (RFC 9110 §14.1.2).
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
