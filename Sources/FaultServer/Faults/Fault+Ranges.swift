// Faults of ranges and of Content-Range (RFC 9110 §14, §15.3.7): catalogue rows 12–27, 53.
extension Fault {
    /// Row 16: 206 with at most `count` bytes, also without a requested range; 400 for a range if `refusesRange`.
    package static func partOnly(_ count: Int64, refusesRange: Bool = false) -> Fault {
        Fault("partOnly") { context in
            let isFirst = context.asked.lowerBound == 0
            if refusesRange, isFirst, context.request.field("Range") != nil { return Reply(400, text: "no ranges\n") }
            let asked = context.asked.lowerBound..<min(context.asked.upperBound, context.asked.lowerBound + count)
            return RangeServer.part(asked, context.version, context.resource)
        }
    }

    /// Row 12: 200 and all bytes for every requested range, with the same validators.
    package static let ignoresRange = Fault("ignoresRange") { context in
        context.whole.head { $0.remove("Accept-Ranges") }
    }

    /// Row 12: the requested part with its Content-Range, but with status 200.
    package static let partWith200 = Fault.head("partWith200") { head, _ in
        if head.status == 206 { head.status = 200 }
    }

    /// Row 12: the requested part with status 200 and without Content-Range: it looks like a whole file.
    package static let unlabelledPartWith200 = Fault.head("unlabelledPartWith200") { head, _ in
        guard head.status == 206 else { return }
        head.status = 200
        head.remove("Content-Range")
    }

    /// Row 27: `status` for each request with Range, and the file for a request without Range.
    package static func refusesRange(_ status: Int, fields: [(String, String)] = []) -> Fault {
        Fault("refusesRange\(status)") { context in
            context.request.field("Range") == nil
                ? context.correct : Reply(status, fields, text: "status \(status)\n")
        }
    }

    /// Row 1: a close instead of the head for each request with Range, and the file for a request without Range.
    package static let closesOnRange = Fault("closesOnRange") { context in
        context.request.field("Range") == nil ? context.correct : closeBeforeHead.make(context)
    }

    /// Row 12: ignores the range, and closes after `count` bytes of the file.
    package static func cutWithoutRanges(after count: Int64 = 700_000) -> Fault {
        Fault("cutWithoutRanges") { context in
            ignoresRange.make(context).body([.content(context.version.content, 0..<count), .close])
        }
    }

    /// Row 53: like ``ignoresRange``, but with `Accept-Ranges: bytes`.
    package static let claimsRanges = Fault("claimsRanges") { $0.whole }

    /// Row 53: supports ranges, but sends `Accept-Ranges: none`.
    package static let deniesRanges = Fault.head("deniesRanges") { head, _ in head.set("Accept-Ranges", "none") }

    /// Row 14: the bytes and the Content-Range of a range that starts `shift` bytes later.
    package static func startsLater(by shift: Int64 = 512) -> Fault {
        Fault("startsLater") { context in
            let start = min(context.asked.lowerBound + shift, max(context.version.length - 1, 0))
            return context.part(start..<max(start, context.asked.upperBound))
        }
    }

    /// Row 14: the bytes and the Content-Range of a range that starts at zero.
    package static let startsAtZero = Fault("startsAtZero") { $0.part(0..<$0.asked.upperBound) }

    /// Row 55 without a digest: a correct head, and bytes from an offset that is `shift` bytes later.
    package static func shiftedBytes(by shift: Int64 = 512) -> Fault {
        body("shiftedBytes") { context in
            [.content(context.version.content, context.asked.lowerBound + shift..<context.asked.upperBound + shift)]
        }
    }

    /// Row 15: a range that ends `count` bytes after the requested end, but not beyond the file.
    package static func endsLater(by count: Int64 = 1000) -> Fault {
        Fault("endsLater") { context in
            context.part(context.asked.lowerBound..<min(context.asked.upperBound + count, context.version.length))
        }
    }

    /// Row 15: a Content-Range whose last byte is beyond its complete length.
    package static let endsBeyondTotal = Fault.head("endsBeyondTotal") { head, context in
        let length = context.version.length
        head.set("Content-Range", "bytes \(context.asked.lowerBound)-\(length + 9)/\(length)")
    }

    /// Row 16: a correct 206 for the first `count` requested bytes; `nil` for half of them.
    package static func shorterRange(_ count: Int64? = nil) -> Fault {
        Fault("shorterRange") { context in
            let range = context.prefix(count)
            return range.isEmpty ? context.correct : context.part(range)
        }
    }

    /// Row 17: 206 without Content-Range.
    package static let noContentRange = Fault.head("noContentRange") { head, _ in head.remove("Content-Range") }

    /// Row 18: 206 with `text` as the value of Content-Range.
    package static func contentRange(_ text: String) -> Fault {
        Fault("contentRange") { context in
            context.part(context.asked).head { $0.set("Content-Range", text) }
        }
    }

    /// Row 18: a Content-Range with an invalid syntax.
    package static let garbageContentRange = contentRange("bytes some-of/it").named("garbageContentRange")

    /// Row 18: a Content-Range in another unit.
    package static let otherUnit = Fault("otherUnit") { context in
        let length = context.version.length
        return context.part(context.asked).head {
            $0.set("Content-Range", "lines \(context.asked.lowerBound)-\(context.asked.upperBound - 1)/\(length)")
        }
    }

    /// Row 18: a negative first byte.
    package static let negativeContentRange = contentRange("bytes -5-10/100").named("negativeContentRange")

    /// Row 18: a first byte after the last.
    package static let backwardContentRange = contentRange("bytes 10-5/100").named("backwardContentRange")

    /// Row 18: numbers beyond 64 bits.
    package static let overflowingContentRange = contentRange("bytes 18446744073709551616-18446744073709551620/*")
        .named("overflowingContentRange")

    /// Row 19: 206 with another complete length.
    package static func otherTotal(_ change: Int64 = 1000) -> Fault {
        Fault("otherTotal") { context in
            context.part(context.asked).head { head in
                let range = "\(context.asked.lowerBound)-\(context.asked.upperBound - 1)"
                head.set("Content-Range", "bytes \(range)/\(context.version.length + change)")
            }
        }
    }

    /// Row 20: 206 with `*` for the complete length.
    package static let unknownTotal = Fault("unknownTotal") { context in
        context.part(context.asked).head {
            $0.set("Content-Range", "bytes \(context.asked.lowerBound)-\(context.asked.upperBound - 1)/*")
        }
    }

    /// Row 21: answers with a 206 from another version for every value of If-Range.
    package static func partOf(_ other: Version) -> Fault {
        Fault("partOf") { RangeServer.part($0.asked, other, $0.resource) }
    }

    /// Row 22: chunked, with a range that starts `shift` bytes later than requested.
    package static func chunkedStartsLater(by shift: Int64 = 512) -> Fault {
        Fault("chunkedStartsLater") { context in
            let start = min(context.asked.lowerBound + shift, context.version.length - 1)
            let reply = context.part(start..<max(start, context.asked.upperBound)).head {
                $0.remove("Content-Length")
                $0.set("Transfer-Encoding", "chunked")
            }
            let range = start..<max(start, context.asked.upperBound)
            return reply.body([.chunks(context.version.content, range, size: 10_000), .lastChunk])
        }
    }

    /// Row 23: multipart/byteranges for one range.
    package static let multipart = Fault("multipart") { context in
        let range = "bytes \(context.asked.lowerBound)-\(context.asked.upperBound - 1)/\(context.version.length)"
        let start = Array(
            "--SEAM\r\nContent-Type: application/octet-stream\r\nContent-Range: \(range)\r\n\r\n".utf8)
        let end = Array("\r\n--SEAM--\r\n".utf8)
        let length = Int64(start.count + end.count) + context.asked.upperBound - context.asked.lowerBound
        return context.part(context.asked).head {
            $0.remove("Content-Range")
            $0.set("Content-Type", "multipart/byteranges; boundary=SEAM")
            $0.set("Content-Length", String(length))
        }.body([.bytes(start), .content(context.version.content, context.asked), .bytes(end)])
    }

    /// Row 24: 206 for the first half of the file to a request without a range.
    package static let unaskedPart = Fault("unaskedPart") { context in
        guard case .none = context.request.range(ofLength: context.version.length) else { return context.correct }
        return context.part(0..<max(1, context.version.length / 2))
    }

    /// Rows 25, 26: 416 with a complete length; `nil` for no Content-Range.
    package static func unsatisfiable(total: Int64?) -> Fault {
        Fault("unsatisfiable") { _ in Reply(416, total.map { [("Content-Range", "bytes */\($0)")] } ?? []) }
    }

    /// Row 27: 416 with a page of HTML.
    package static let unsatisfiablePage = Fault("unsatisfiablePage") { context in
        Reply(
            416, [("Content-Type", "text/html"), ("Content-Range", "bytes */\(context.version.length)")],
            text: "<html><body><h1>416 Range Not Satisfiable</h1></body></html>\n")
    }
}

extension RequestContext {
    /// Returns a correct 206 for the given range instead of the requested one.
    func part(_ range: Range<Int64>) -> Reply { RangeServer.part(range, version, resource) }
}
