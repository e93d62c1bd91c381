/// What a request says besides whom it asks.
package enum RequestTerms {
    /// The fields of a request for those bytes, the user's own at the end.
    ///
    /// - Parameters:
    ///   - confirms: no cache may answer.
    ///   - proof: the strong validator that the bytes must be of.
    static func fields(
        _ asked: ResponseQuestion.Asked, own: HTTPFields, confirms: Bool = false, proof: String? = nil
    ) -> HTTPFields {
        if own.lines.isEmpty, !confirms, proof == nil {
            if asked == .from(0) { return fromStart }
            if asked == .range(smallFile) { return ofSmallFile }
        }
        var fields = own.lines.isEmpty ? usual : usual(besides: own)
        if confirms { fields.append(name: "Cache-Control", value: "no-cache") }
        switch asked {
        case .whole: break
        case .from(let lower): fields.append(name: "Range", value: "bytes=\(lower)-")
        case .range(let range):
            fields.append(name: "Range", value: "bytes=\(range.lowerBound)-\(range.upperBound - 1)")
        }
        if let proof { fields.append(name: "If-Range", value: proof) }
        for line in own.lines where !isReserved(line.name) { fields.append(name: line.name, value: line.value) }
        return fields
    }

    /// What every request says, unless the user says something else there.
    private static func usual(besides own: HTTPFields) -> HTTPFields {
        var fields = HTTPFields()
        func add(_ name: String, _ value: String) {
            if !own.has(name) { fields.append(name: name, value: value) }
        }
        add("User-Agent", "towline/\(TowlineVersion.text)")
        add("Accept", "*/*")
        // Ranges count coded bytes (RFC 9110 §14.1.2): only the identity coding can be joined.
        fields.append(name: "Accept-Encoding", value: "identity")
        add("Want-Repr-Digest", "sha-256=10, sha-512=3")
        return fields
    }

    private static let usual = usual(besides: HTTPFields())

    /// Those of nearly every small file, made once for all.
    private static let fromStart = with("bytes=0-")
    /// The same where others share the connection.
    private static let ofSmallFile = with("bytes=0-\(smallFile.upperBound - 1)")

    private static func with(_ range: String) -> HTTPFields {
        var fields = usual
        fields.append(name: "Range", value: range)
        return fields
    }

    /// What is asked for of what may be a small file where others share the connection.
    static let smallFile = ByteRange(0, SharingPolicy.smallLimit)

    /// Whether a field decides what bytes come back: not the user's to set.
    package static func isReserved(_ name: String) -> Bool { reserved.contains { HTTPFields.equalNames($0, name) } }

    private static let reserved = [
        "Range", "If-Range", "If-Match", "If-None-Match", "If-Modified-Since", "If-Unmodified-Since",
        "Accept-Encoding", "Host", "Content-Length", "Transfer-Encoding", "TE", "Connection",
    ]
}
