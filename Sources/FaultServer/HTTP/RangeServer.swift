/// A function that returns the correct reply to a request for a range (RFC 9110 §13, §14, §15.3.7).
enum RangeServer {
    static func reply(to request: RequestInfo, version: Version, resource: Resource) -> Reply {
        guard request.method == "GET" || request.method == "HEAD" else {
            return Reply(405, [("Allow", "GET, HEAD")])
        }
        if let tags = request.field("If-Match"), !matches(tags, version) { return Reply(412) }
        if isUnchanged(version, request) { return unchanged(version) }
        let asked =
            applies(ifRange: request.field("If-Range"), to: version) ? request.range(ofLength: version.length) : .none
        switch request.method == "GET" ? asked : .none {
        case .none: return whole(version, resource)
        case .range(let range): return part(range, version, resource)
        case .unsatisfiable: return unsatisfiable(version)
        }
    }

    static func whole(_ version: Version, _ resource: Resource) -> Reply {
        let head = ReplyHead(200, fields(version, resource) + [("Content-Length", String(version.length))])
        return Reply([.head(head), .content(version.content, 0..<version.length)])
    }

    static func part(_ range: Range<Int64>, _ version: Version, _ resource: Resource) -> Reply {
        var head = ReplyHead(206, fields(version, resource))
        head.set("Content-Range", "bytes \(range.lowerBound)-\(range.upperBound - 1)/\(version.length)")
        head.set("Content-Length", String(range.upperBound - range.lowerBound))
        return Reply([.head(head), .content(version.content, range)])
    }

    static func unsatisfiable(_ version: Version) -> Reply {
        Reply(416, [("Content-Range", "bytes */\(version.length)")])
    }

    /// Returns the fields of every response with this version.
    static func fields(_ version: Version, _ resource: Resource) -> [(String, String)] {
        var fields: [(String, String)] = []
        if let date = version.dateField(now: HTTPDateText.now) { fields.append(("Date", date)) }
        if let type = resource.contentType { fields.append(("Content-Type", type)) }
        if let etag = version.etag.field { fields.append(("ETag", etag)) }
        if let changed = version.lastModifiedField { fields.append(("Last-Modified", changed)) }
        fields.append(("Accept-Ranges", "bytes"))
        return fields + resource.fields
    }

    /// Returns whether If-Range permits a range: without If-Range always; for a tag if it is strong and equal; for a
    /// date if it is equal to the version's (RFC 9110 §13.1.5).
    private static func applies(ifRange: String?, to version: Version) -> Bool {
        guard let ifRange else { return true }
        if ifRange.hasPrefix("W/") { return false }
        if ifRange.hasPrefix("\"") { return strong(version) == ifRange }
        return version.lastModifiedField == ifRange
    }

    /// Returns whether the client already has this version. If-None-Match overrides If-Modified-Since (RFC 9110
    /// §13.1.3). As with nginx, only an equal date means unchanged.
    private static func isUnchanged(_ version: Version, _ request: RequestInfo) -> Bool {
        if let tags = request.field("If-None-Match") { return matchesWeakly(tags, version) }
        guard let date = request.field("If-Modified-Since") else { return false }
        return version.lastModifiedField == date
    }

    private static func matches(_ tags: String, _ version: Version) -> Bool {
        tags == "*" || list(tags).contains { $0 == strong(version) }
    }

    private static func matchesWeakly(_ tags: String, _ version: Version) -> Bool {
        guard let own = version.etag.field else { return false }
        func opaque(_ tag: String) -> Substring { tag.hasPrefix("W/") ? tag.dropFirst(2) : Substring(tag) }
        return tags == "*" || list(tags).contains { opaque($0) == opaque(own) }
    }

    private static func strong(_ version: Version) -> String? {
        if case .strong = version.etag { version.etag.field } else { nil }
    }

    private static func list(_ tags: String) -> [String] {
        tags.split(separator: ",").map { String($0.drop { $0 == " " }) }
    }

    private static func unchanged(_ version: Version) -> Reply {
        Reply(304, version.etag.field.map { [("ETag", $0)] } ?? [])
    }
}
