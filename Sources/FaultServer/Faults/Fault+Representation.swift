// Faults of validators and of the selected representation (RFC 9110 §8.8, §13): catalogue rows 12, 13, 21,
// 28–37, 49, 57. ``ContentSwitch`` and ``FaultServer/replace(_:with:)`` change a file at a given moment.
extension Fault {
    /// Row 28: the entity tag made weak; If-Range then disables ranges (RFC 9110 §13.1.5).
    package static let weakETag = Fault("weakETag") { context in
        guard case .strong(let text) = context.version.etag else { return context.correct }
        return context.correct(of: context.version.with(etag: .weak(text)))
    }

    /// Row 28: the entity tag without its quotes.
    package static let unquotedETag = head("unquotedETag") { head, context in
        guard case .strong(let text) = context.version.etag else { return }
        head.set("ETag", text)
    }

    /// Row 30: no ETag, and Last-Modified with the zone `+0000`.
    package static let dateWithOffset = head("dateWithOffset") { head, context in
        head.remove("ETag")
        guard let date = context.version.lastModifiedField else { return }
        head.set("Last-Modified", date.replacing("GMT", with: "+0000"))
    }

    /// Row 31: a node for each connection, each with its own strong tag for the same bytes.
    package static let tagOfEachConnection = Fault("tagOfEachConnection") { context in
        context.correct(of: context.version.with(etag: .strong("node-\(context.request.connection)")))
    }

    /// Row 31: a node with its own strong tag for each connection, where every node ignores If-Range.
    package static let tagOfEachConnectionBy206 = Fault("tagOfEachConnectionBy206") { context in
        let version = context.version.with(etag: .strong("node-\(context.request.connection)"))
        return context.request.field("Range") == nil
            ? RangeServer.whole(version, context.resource) : RangeServer.part(context.asked, version, context.resource)
    }

    /// Row 29: neither ETag nor Last-Modified.
    package static let noValidator = Fault("noValidator") { context in
        var version = context.version.with(etag: .absent)
        version.lastModified = nil
        return context.correct(of: version)
    }

    /// Row 30: no ETag, and Last-Modified `seconds` before Date. Below one second the date is weak
    /// (RFC 9110 §8.8.2.2).
    package static func lastModified(secondsBeforeDate seconds: Int64) -> Fault {
        Fault("lastModified") { context in
            var version = context.version.with(etag: .absent)
            version.lastModified = 1_700_000_000
            version.date = .fixed(1_700_000_000 + seconds)
            return context.correct(of: version)
        }
    }

    /// Row 30: no ETag, Last-Modified equal to Date.
    package static let lastModifiedIsDate = lastModified(secondsBeforeDate: 0).named("lastModifiedIsDate")

    /// Row 113: no ETag, Last-Modified, and no Date.
    package static let noDate = Fault("noDate") { context in
        var version = context.version.with(etag: .absent)
        version.date = .absent
        return context.correct(of: version)
    }

    /// Row 31: two edges with the same bytes and different strong tags, alternately.
    package static let alternatingETags = Fault("alternatingETags") { context in
        context.correct(of: context.version.with(etag: .strong(context.request.index % 2 == 0 ? "A" : "B")))
    }

    /// Rows 21, 32: the correct reply of a server that has other bytes of the same length with another tag.
    package static func otherContent(seed: UInt64 = 99) -> Fault {
        Fault("otherContent") { $0.correct(of: $0.version.replaced(seed: seed)) }
    }

    /// Row 33: other bytes of the same length with the same validators.
    package static func sameETagOtherBytes(seed: UInt64 = 99) -> Fault {
        Fault("sameETagOtherBytes") { context in
            var version = context.version
            version.seed = seed
            return context.correct(of: version)
        }
    }

    /// Row 32: other bytes of the same length without a validator.
    package static func noValidatorOtherBytes(seed: UInt64 = 99) -> Fault {
        Fault("noValidatorOtherBytes") { context in
            var version = context.version.with(etag: .absent)
            version.lastModified = nil
            version.seed = seed
            return context.correct(of: version)
        }
    }

    /// Row 13: ignores the range, and sends all bytes of another version.
    package static func ignoresRangeOfOtherContent(seed: UInt64 = 99) -> Fault {
        Fault("ignoresRangeOfOtherContent") { context in
            RangeServer.whole(context.version.replaced(seed: seed), context.resource)
        }
    }

    /// Row 21: 206 with the bytes and the tag of another version for every value of If-Range.
    package static func otherPart(seed: UInt64 = 99) -> Fault {
        Fault("otherPart") { RangeServer.part($0.asked, $0.version.replaced(seed: seed), $0.resource) }
    }

    /// Row 34: a longer file with the same tag.
    package static func grown(by count: Int64 = 1000) -> Fault {
        Fault("grown") { context in
            var version = context.version
            version.length += count
            return context.correct(of: version)
        }
    }

    /// Row 35: a 206 with `Content-Encoding: gzip`. Other replies are correct.
    package static let codedPart = Fault.head("codedPart") { head, _ in
        if head.status == 206 { head.set("Content-Encoding", "gzip") }
    }

    /// Rows 36, 37: a small HTML page with 200 (the error page of a busy server, or a login page).
    package static let page = Fault("page") { _ in
        Reply(200, [("Content-Type", "text/html; charset=utf-8")], text: "<html><body>Please log in.</body></html>\n")
    }

    /// Row 36: a small HTML page with the validators of the file.
    package static let pageWithETag = Fault("pageWithETag") { context in
        let tag = context.version.etag.field.map { [("ETag", $0)] } ?? []
        return Reply(200, [("Content-Type", "text/html")] + tag, text: "<html><body>Busy.</body></html>\n")
    }

    /// Row 37: a captive portal: every request is redirected to a login page on another server.
    package static func captivePortal(_ location: String) -> Fault {
        redirect(302, to: location).named("captivePortal")
    }

    /// Rows 54, 55: a flipped bit in the byte at `offset` of the file, if the response includes this byte.
    package static func corruptByte(at offset: Int64) -> Fault {
        body("corruptByte") { context in
            let (content, asked) = (context.version.content, context.asked)
            guard asked.contains(offset) else { return [.content(content, asked)] }
            return [
                .content(content, asked.lowerBound..<offset),
                .bytes(content.bytes(in: offset..<offset + 1).map { $0 ^ 0x10 }),
                .content(content, offset + 1..<asked.upperBound),
            ]
        }
    }

    /// Row 52: the correct reply for an empty file to a range request: 416 with `*/0`; without a range 200.
    package static let empty = Fault("empty") { context in
        var version = context.version
        version.length = 0
        return context.correct(of: version)
    }

    /// Returns a fault that adds fields to the correct reply.
    package static func fields(_ fields: [(String, String)]) -> Fault {
        head("fields") { head, _ in
            for (name, value) in fields { head.set(name, value) }
        }
    }

    /// Row 117: a Content-Disposition with a given value.
    package static func contentDisposition(_ value: String) -> Fault {
        fields([("Content-Disposition", value)]).named("contentDisposition")
    }

    /// Row 117: two Content-Disposition lines.
    package static func contentDispositions(_ first: String, _ second: String) -> Fault {
        head("contentDispositions") { head, _ in
            head.fields += [("Content-Disposition", first), ("Content-Disposition", second)]
        }
    }

    /// Rows 54, 55: a `Repr-Digest` with a given value (RFC 9530), for example one that does not match.
    package static func reprDigest(_ value: String) -> Fault { fields([("Repr-Digest", value)]).named("reprDigest") }

    /// Row 54: a `Repr-Digest` of SHA-256 that does not match.
    package static let wrongReprDigest = reprDigest("sha-256=:\(String(repeating: "A", count: 43))=:")
        .named("wrongReprDigest")

    /// Row 55: a `Content-Digest` of the correct bytes (RFC 9530). `digest` returns the field's value for the body.
    package static func contentDigest(_ digest: @escaping @Sendable ([UInt8]) -> String) -> Fault {
        head("contentDigest") { head, context in
            head.set("Content-Digest", digest(context.version.content.bytes(in: context.asked)))
        }
    }

    /// Row 55: like ``contentDigest(_:)``, with a flipped bit in the middle of the body.
    package static func contentDigestWithFlip(_ digest: @escaping @Sendable ([UInt8]) -> String) -> Fault {
        Fault("contentDigestWithFlip") { context in
            let middle = context.asked.lowerBound + (context.asked.upperBound - context.asked.lowerBound) / 2
            let steps = corruptByte(at: middle).make(context).steps.dropFirst()
            return contentDigest(digest).make(context).body(Array(steps))
        }
    }
}

extension Version {
    /// Returns a copy with another entity tag.
    package func with(etag: EntityTag) -> Version {
        var version = self
        version.etag = etag
        return version
    }
}
