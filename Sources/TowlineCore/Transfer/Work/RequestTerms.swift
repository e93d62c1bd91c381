/// Functions that create the header fields of the HTTP requests of a transfer.
package enum RequestTerms {
    /// Returns the fields of a request for the bytes `asked`, with the user's fields (`own`) at the end.
    ///
    /// - Parameters:
    ///   - confirms: `true` if no cache may respond (`Cache-Control: no-cache`).
    ///   - proof: the strong validator that the bytes must have (`If-Range`); `nil` omits the field.
    ///   - condition: the version of the existing file, which need not be sent again; `nil` for an unconditional
    ///     request.
    ///   - wantsDigest: `true` to request a checksum from the server (`Want-Repr-Digest`).
    static func fields(
        _ asked: ResponseQuestion.Asked, own: HTTPFields, confirms: Bool = false, proof: String? = nil,
        condition: ExistingFile.Condition? = nil, wantsDigest: Bool = true
    ) -> HTTPFields {
        if own.lines.isEmpty, !confirms, proof == nil, condition == nil {
            if asked == .from(0) { return wantsDigest ? fromStart : fromStartAlone }
            if asked == .range(smallFile) { return wantsDigest ? ofSmallFile : ofSmallFileAlone }
        }
        var fields = own.lines.isEmpty && wantsDigest ? usual : usual(besides: own, wantsDigest: wantsDigest)
        if confirms { fields.append(name: "Cache-Control", value: "no-cache") }
        switch asked {
        case .whole: break
        case .from(let lower): fields.append(name: "Range", value: "bytes=\(lower)-")
        case .range(let range):
            fields.append(name: "Range", value: "bytes=\(range.lowerBound)-\(range.upperBound - 1)")
        }
        if let proof { fields.append(name: "If-Range", value: proof) }
        if let tag = condition?.entityTag { fields.append(name: "If-None-Match", value: tag.fieldValue) }
        if let date = condition?.lastModified { fields.append(name: "If-Modified-Since", value: date.fieldValue) }
        for line in own.lines where !isReserved(line.name) { fields.append(name: line.name, value: line.value) }
        return fields
    }

    /// Returns the fields that every request has, except those that the user sets (`own`).
    private static func usual(besides own: HTTPFields, wantsDigest: Bool) -> HTTPFields {
        var fields = HTTPFields()
        func add(_ name: String, _ value: String) {
            if !own.has(name) { fields.append(name: name, value: value) }
        }
        add("User-Agent", "towline/\(TowlineVersion.text)")
        add("Accept", "*/*")
        // Ranges count coded bytes (RFC 9110 §14.1.2): only the identity coding can be joined.
        fields.append(name: "Accept-Encoding", value: "identity")
        if wantsDigest { add("Want-Repr-Digest", "sha-256=10, sha-512=3") }
        return fields
    }

    /// The fields that every request has, without user fields. Created once.
    private static let usual = usual(besides: HTTPFields(), wantsDigest: true)

    /// The fields of a request for a whole file as `bytes=0-`, without user fields, with a request for a checksum.
    /// Created once, because nearly every small file needs them.
    private static let fromStart = with("bytes=0-", wantsDigest: true)
    /// The fields of a request for a whole file as `bytes=0-`, without user fields and without a request for a
    /// checksum.
    private static let fromStartAlone = with("bytes=0-", wantsDigest: false)
    /// The fields of the first request for a file over a shared connection, without user fields, with a request for a
    /// checksum. Created once.
    private static let ofSmallFile = with("bytes=0-\(smallFile.upperBound - 1)", wantsDigest: true)
    /// The fields of the first request for a file over a shared connection, without user fields and without a request
    /// for a checksum.
    private static let ofSmallFileAlone = with("bytes=0-\(smallFile.upperBound - 1)", wantsDigest: false)

    private static func with(_ range: String, wantsDigest: Bool) -> HTTPFields {
        var fields = usual(besides: HTTPFields(), wantsDigest: wantsDigest)
        fields.append(name: "Range", value: range)
        return fields
    }

    /// The range of the first request over a shared connection, for a file that may be small.
    static let smallFile = ByteRange(0, SharingPolicy.smallLimit)

    /// Returns whether a field determines which bytes the server sends, so that the user cannot set it.
    package static func isReserved(_ name: String) -> Bool { reserved.contains { HTTPFields.equalNames($0, name) } }

    /// The names of the fields that determine which bytes the server sends.
    private static let reserved = [
        "Range", "If-Range", "If-Match", "If-None-Match", "If-Modified-Since", "If-Unmodified-Since",
        "Accept-Encoding", "Content-Length", "Transfer-Encoding", "TE", "Connection",
    ]
}
