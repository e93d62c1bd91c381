// Faults of a body's length and framing (RFC 9112 §6, §7, §8): catalogue rows 3, 5–11.
extension Fault {
    /// Rows 3, 50: the full `Content-Length`, `count` body bytes (`nil`: half), and a normal end. Over HTTP/2 the end
    /// is END_STREAM before the length (RFC 9113 §8.1.1).
    package static func shortBody(after count: Int64? = nil) -> Fault {
        Fault("shortBody") { context in
            let sent = Reply.Step.content(context.version.content, context.prefix(count))
            return context.correct.body(context.request.isHTTP2 ? [sent] : [sent, .close])
        }
    }

    /// Row 5: the correct body, then `count` bytes beyond `Content-Length`.
    package static func surplus(_ count: Int = 1000) -> Fault {
        Fault("surplus") { $0.correct.then(.bytes([UInt8](repeating: 0x21, count: count))) }
    }

    /// The correct reply in the chunked coding.
    package static func chunked(size: Int = 10_000) -> Fault {
        Fault("chunked") { $0.chunked(size: size, upTo: $0.asked).then(.lastChunk) }
    }

    /// Row 6: chunked with all bytes, but without the last chunk.
    package static let noLastChunk = Fault("noLastChunk") { $0.chunked(size: 10_000, upTo: $0.asked).then(.close) }

    /// Row 6: chunked, cut after `count` bytes; `nil` for half of the body.
    package static func cutChunked(after count: Int64? = nil) -> Fault {
        Fault("cutChunked") { $0.chunked(size: 10_000, upTo: $0.prefix(count)).then(.close) }
    }

    /// Row 7: a chunk with `size` as the text of its size.
    package static func chunkSize(_ size: String) -> Fault {
        Fault("chunkSize") { context in
            context.chunked(size: 10_000, upTo: context.prefix(nil))
                .then(.raw(Array((size + "\r\n").utf8)), .bytes(Array("0123456789\r\n".utf8)), .lastChunk, .close)
        }
    }

    /// Row 7: the chunk size −1.
    package static let negativeChunkSize = chunkSize("-1").named("negativeChunkSize")

    /// Row 7: a chunk size of 2⁶⁴.
    package static let overflowingChunkSize = chunkSize("10000000000000000").named("overflowingChunkSize")

    /// Row 7: a chunk size that is not a number.
    package static let garbageChunkSize = chunkSize("zz").named("garbageChunkSize")

    /// Row 7: a chunk extension of a megabyte.
    package static let hugeChunkExtension = chunkSize("a;x=" + String(repeating: "y", count: 1_000_000))
        .named("hugeChunkExtension")

    /// Row 8: both `Transfer-Encoding` and `Content-Length` (RFC 9112 §6.3: ought to be handled as an error).
    package static let bothLengths = Fault("bothLengths") { context in
        let length = context.asked.upperBound - context.asked.lowerBound
        return context.chunked(size: 10_000, upTo: context.asked)
            .head { $0.set("Content-Length", String(length / 2)) }.then(.lastChunk, .close)
    }

    /// Row 8: chunked, with `coding` as the value of `Transfer-Encoding`.
    package static func chunkedAs(_ coding: String) -> Fault {
        Fault("chunkedAs") { context in
            context.chunked(size: 10_000, upTo: context.asked)
                .head { $0.set("Transfer-Encoding", coding) }.then(.lastChunk)
        }
    }

    /// Row 51: the correct reply with one or more lines at the beginning of its head.
    package static func headLine(_ line: String) -> Fault {
        head("headLine") { head, _ in head.line = "HTTP/1.1 \(head.status) OK\r\n\(line)" }
    }

    /// Row 5: the correct reply, and a moment later bytes that belong to no response.
    package static func strayBytes(_ bytes: String) -> Fault {
        Fault("strayBytes") { $0.correct.then(.pause(.milliseconds(2)), .raw(Array(bytes.utf8))) }
    }

    /// Row 9: `text` as the value of `Content-Length`; `%` is replaced by the correct number.
    package static func contentLength(_ text: String) -> Fault {
        Fault("contentLength") { context in
            let right = String(context.asked.upperBound - context.asked.lowerBound)
            let value = text.split(separator: "%", omittingEmptySubsequences: false).joined(separator: right)
            return context.correct.head { $0.set("Content-Length", value) }.then(.close)
        }
    }

    /// Row 9: the correct number twice in one list, which a client may accept (RFC 9112 §6.3).
    package static let repeatedContentLength = contentLength("%, %").named("repeatedContentLength")

    /// Row 9: two different numbers.
    package static let differingContentLengths = contentLength("%, 6").named("differingContentLengths")

    /// Row 9: a negative number.
    package static let negativeContentLength = contentLength("-1").named("negativeContentLength")

    /// Row 9: 2⁶⁴.
    package static let overflowingContentLength = contentLength("18446744073709551616")
        .named("overflowingContentLength")

    /// Row 10: no length; the body ends with the connection.
    package static let closeDelimited = Fault("closeDelimited") { context in
        context.correct.head { $0.remove("Content-Length") }.then(.close)
    }

    /// Row 10: like ``closeDelimited``, with 200 and the whole body for every request.
    package static let closeDelimitedWhole = Fault("closeDelimitedWhole") { context in
        context.whole.head {
            $0.remove("Content-Length")
            $0.remove("Accept-Ranges")
        }.then(.close)
    }

    /// Row 11: no length, and the connection ends after `count` bytes; `nil` for half of the body.
    package static func cutCloseDelimited(after count: Int64? = nil) -> Fault {
        Fault("cutCloseDelimited") { context in
            context.correct.head { $0.remove("Content-Length") }
                .body([.content(context.version.content, context.prefix(count)), .close])
        }
    }

    func named(_ name: String) -> Fault { Fault(name, make) }
}

extension RequestContext {
    /// The reply of a correct server that ignores ranges.
    var whole: Reply { RangeServer.whole(version, resource) }

    /// Returns the correct reply with a chunked head, and chunks up to the end of `range`, without the last chunk.
    func chunked(size: Int, upTo range: Range<Int64>) -> Reply {
        correct.head {
            $0.remove("Content-Length")
            $0.set("Transfer-Encoding", "chunked")
        }.body([.chunks(version.content, range, size: size)])
    }
}
