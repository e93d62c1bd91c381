// Faults of the connection and of the speed of a reply: catalogue rows 1–4, 43–47, 50, 51.
extension Fault {
    /// Row 1: closes normally before a byte of a response.
    package static let closeBeforeHead = Fault("closeBeforeHead") { _ in Reply([.close]) }

    /// Row 1: RST before a byte of a response.
    package static let resetBeforeHead = Fault("resetBeforeHead") { _ in Reply([.reset]) }

    /// Rows 4, 61: never answers.
    package static let stallBeforeHead = Fault("stallBeforeHead") { _ in Reply([.stall]) }

    /// Row 2: RST right after the head.
    package static let resetAfterHead = Fault.body("resetAfterHead") { _ in [.reset] }

    /// Rows 2, 62: RST after `count` body bytes; `nil` for half of the body. Bytes that the kernel has not sent
    /// by then are lost.
    package static func resetAfter(_ count: Int64? = nil) -> Fault {
        body("resetAfter") { [.content($0.version.content, $0.prefix(count)), .reset] }
    }

    /// Row 4: silence after `count` body bytes; `nil` for half of the body.
    package static func stall(after count: Int64? = nil) -> Fault {
        body("stall") { [.content($0.version.content, $0.prefix(count)), .stall] }
    }

    /// Row 4: silence right after the head.
    package static let stallAfterHead = Fault.body("stallAfterHead") { _ in [.stall] }

    /// Rows 4, 45: silence for `duration` after `count` body bytes, then the rest.
    package static func pause(after count: Int64? = nil, _ duration: Duration) -> Fault {
        body("pause") { context in
            let first = context.prefix(count)
            let rest = first.upperBound..<context.asked.upperBound
            return [
                .content(context.version.content, first), .pause(duration), .content(context.version.content, rest),
            ]
        }
    }

    /// Row 4: waits at the gate after `count` body bytes, then sends the rest.
    package static func wait(after count: Int64? = nil, for gate: Gate) -> Fault {
        body("wait") { context in
            let first = context.prefix(count)
            let rest = first.upperBound..<context.asked.upperBound
            return [.content(context.version.content, first), .wait(gate), .content(context.version.content, rest)]
        }
    }

    /// Row 44: the head at a number of bytes per second, then the body at full speed.
    package static func slowHead(bytesPerSecond: Int64 = 1) -> Fault {
        Fault("slowHead") { context in
            Reply(
                [.rate(bytesPerSecond)] + context.correct.steps.prefix(1) + [.rate(nil)]
                    + context.correct.steps.dropFirst())
        }
    }

    /// Row 45: the body at a number of bytes per second.
    package static func slowBody(bytesPerSecond: Int64 = 1) -> Fault {
        Fault("slowBody") { context in
            Reply(context.correct.steps.prefix(1) + [.rate(bytesPerSecond)] + context.correct.steps.dropFirst())
        }
    }

    /// Row 46: an endless sequence of field lines.
    package static let endlessHead = Fault("endlessHead") { _ in
        Reply([.raw(Array("HTTP/1.1 200 OK\r\n".utf8)), .repeated(fieldLine(length: 1024), count: nil)])
    }

    /// Row 46: a head of a gigabyte, then the correct reply's other fields and body.
    package static func hugeHead(length: Int = 1_000_000_000) -> Fault {
        Fault("hugeHead") { context in
            let line = fieldLine(length: 8192)
            let status = Array("HTTP/1.1 \(context.correct.status ?? 200) OK\r\n".utf8)
            let flood: [Reply.Step] = [.raw(status), .repeated(line, count: max(1, length / line.count))]
            let fields = context.correct.head { $0.line = "X-Last: 1" }
            return Reply(flood + fields.steps)
        }
    }

    /// Row 46: an endless field line.
    package static let endlessFieldLine = Fault("endlessFieldLine") { _ in
        let start = Array("HTTP/1.1 200 OK\r\nX-Flood: ".utf8)
        return Reply([.raw(start), .repeated([UInt8](repeating: 0x61, count: 1024), count: nil)])
    }

    /// Row 47: an endless sequence of interim responses (RFC 9110 §15.2).
    package static let endlessInterim = Fault("endlessInterim") { _ in
        Reply([.repeatedHead(ReplyHead(103, [("Link", "</a>")]), count: nil)])
    }

    /// Row 47: `count` interim responses, then the correct reply. A client must accept a few.
    package static func interim(_ count: Int) -> Fault {
        Fault("interim") { context in
            return Reply([.repeatedHead(ReplyHead(103, [("Link", "</a>")]), count: count)] + context.correct.steps)
        }
    }

    /// Row 51: a body without a head, closed at its end (HTTP/0.9).
    package static let http09 = Fault("http09") { context in
        Reply([.content(context.version.content, context.asked), .close])
    }

    /// Row 51: a first line that is not a status line. The body follows a moment later, so that a client that closes at
    /// the head is not counted as having read the bytes in the socket buffers.
    package static let garbageStatusLine = Fault("garbageStatusLine") { context in
        let steps = context.correct.head { $0.line = "HTTP/7.x OK maybe" }.steps
        return Reply(steps.prefix(1) + [.pause(.milliseconds(100))] + steps.dropFirst())
    }

    /// Row 51: the status 999.
    package static let status999 = Fault("status999") { _ in
        Reply(999, text: "no\n")
    }

    /// Row 43: a 503 for each request above `limit` at one time.
    package static func connectionLimit(_ limit: Int) -> Fault {
        Fault("connectionLimit") { context in
            guard context.request.concurrent > limit else { return context.correct }
            return Reply(503, text: "too many connections\n").then(.close)
        }
    }

    /// Row 43: RST for each request above `limit` at one time.
    package static func connectionLimitByReset(_ limit: Int) -> Fault {
        Fault("connectionLimitByReset") { context in
            context.request.concurrent > limit ? Reply([.reset]) : context.correct
        }
    }

    /// Row 56, rule 15: half the body of a close-delimited reply, then FIN without TLS's close_notify.
    package static func closeWithoutNotify(after count: Int64? = nil) -> Fault {
        Fault("closeWithoutNotify") { context in
            context.correct.head { $0.remove("Content-Length") }
                .body([.content(context.version.content, context.prefix(count)), .closeWithoutNotify])
        }
    }

    /// Row 50: RST_STREAM after each `count` body bytes; over HTTP/1.1 RST of the connection.
    package static func resetStream(every count: Int64 = 65_536, code: UInt32 = 2) -> Fault {
        Fault("resetStream") { context in
            guard context.asked.count > count else { return context.correct }
            return context.correct.body([
                .content(context.version.content, context.prefix(count)), .resetStream(code: code),
            ])
        }
    }

    /// Row 50: RST_STREAM with REFUSED_STREAM before anything else; such a request may be sent again freely
    /// (RFC 9113 §8.7).
    package static let refusedStream = Fault("refusedStream") { _ in Reply([.resetStream(code: 7)]) }

    /// Row 50: GOAWAY in the middle of the body that lets this stream end.
    package static func goAway(after count: Int64? = nil) -> Fault {
        body("goAway") { context in
            let first = context.prefix(count)
            let rest = first.upperBound..<context.asked.upperBound
            return [
                .content(context.version.content, first), .goAway(lastStream: nil, code: 0),
                .content(context.version.content, rest),
            ]
        }
    }

    /// Row 50: GOAWAY that reports that no stream was processed, then a close of the connection.
    package static let goAwayAtOnce = Fault("goAwayAtOnce") { _ in
        Reply([.goAway(lastStream: 0, code: 0), .close])
    }

    private static func fieldLine(length: Int) -> [UInt8] {
        Array("X-Flood: ".utf8) + [UInt8](repeating: 0x61, count: length - 11) + [13, 10]
    }
}

extension RequestContext {
    /// Returns the first `count` requested bytes; `nil` for half of them.
    func prefix(_ count: Int64?) -> Range<Int64> {
        let all = asked.upperBound - asked.lowerBound
        return asked.lowerBound..<asked.lowerBound + min(all, count ?? all / 2)
    }
}
