/// What goes over the wire in answer to one request: a straight line of steps.
package struct Reply: Sendable {
    /// The steps, carried out in order.
    package var steps: [Step]

    /// A reply.
    package init(_ steps: [Step]) { self.steps = steps }

    /// A whole response with a small body.
    package init(_ status: Int, _ fields: [(String, String)] = [], text: String = "") {
        let body = Array(text.utf8)
        var head = ReplyHead(status, fields)
        if status >= 200, status != 204, status != 304 { head.set("Content-Length", String(body.count)) }
        steps = body.isEmpty ? [.head(head)] : [.head(head), .bytes(body)]
    }

    /// One step. Steps that carry body bytes do nothing in the answer to a `HEAD` request.
    package enum Step: Sendable {
        /// A status line and fields, or an HTTP/2 header block.
        case head(ReplyHead)
        /// Body bytes of a file.
        case content(FaultContent, Range<Int64>)
        /// Body bytes as given.
        case bytes([UInt8])
        /// Body bytes of a file in the chunked coding, in pieces of that size, without the last chunk.
        case chunks(FaultContent, Range<Int64>, size: Int)
        /// The last chunk.
        case lastChunk
        /// Bytes that count neither as head nor as body, put on the connection as they are.
        case raw([UInt8])
        /// The bytes over and over, `count` times; `nil` until the client goes away.
        case repeated([UInt8], count: Int?)
        /// The head over and over, `count` times; `nil` until the client goes away.
        case repeatedHead(ReplyHead, count: Int?)
        /// From here on at most so many bytes per second; `nil` for no limit.
        case rate(Int64?)
        /// Waits.
        case pause(Duration)
        /// Waits until the gate is open.
        case wait(Gate)
        /// Says nothing more and keeps the connection until the client closes it.
        case stall
        /// Closes the connection in order: FIN, after TLS's close_notify.
        case close
        /// Closes a TLS connection without close_notify (RFC 9112 §9.8): only FIN.
        case closeWithoutNotify
        /// Sends FIN and goes on reading.
        case closeOutput
        /// Aborts the connection: RST.
        case reset
        /// HTTP/2: RST_STREAM with that error code. HTTP/1.1: as ``reset``.
        case resetStream(code: UInt32)
        /// HTTP/2: GOAWAY that names that stream as the last one, `nil` for this one. HTTP/1.1: nothing.
        case goAway(lastStream: UInt32?, code: UInt32)
    }

    /// The reply with its first head changed.
    package func head(_ change: (inout ReplyHead) -> Void) -> Reply {
        var reply = self
        guard let place = reply.firstHead, case .head(var head) = reply.steps[place] else { return self }
        change(&head)
        reply.steps[place] = .head(head)
        return reply
    }

    /// The reply with its first head kept, and everything after it replaced.
    package func body(_ steps: [Step]) -> Reply {
        guard let place = firstHead else { return self }
        return Reply(Array(self.steps[...place]) + steps)
    }

    /// The reply followed by more steps.
    package func then(_ steps: Step...) -> Reply { Reply(self.steps + steps) }

    /// The status of the first head; `nil` if there is none.
    package var status: Int? {
        guard let place = firstHead, case .head(let head) = steps[place] else { return nil }
        return head.status
    }

    private var firstHead: Int? {
        steps.firstIndex { step in
            if case .head = step { true } else { false }
        }
    }
}

/// A response's status line and fields. Nothing is checked: a fault may say what it likes.
package struct ReplyHead: Sendable {
    /// The status code.
    package var status: Int
    /// The fields in order.
    package var fields: [(String, String)]
    /// The whole status line without its end; `nil` for `HTTP/1.1`, the status and its phrase.
    package var line: String?

    /// A head.
    package init(_ status: Int, _ fields: [(String, String)] = [], line: String? = nil) {
        self.status = status
        self.fields = fields
        self.line = line
    }

    /// Puts the field in the place of all of that name, or at the end.
    package mutating func set(_ name: String, _ value: String) {
        remove(name)
        fields.append((name, value))
    }

    /// Takes all fields of that name out.
    package mutating func remove(_ name: String) {
        let lowercase = name.lowercased()
        fields.removeAll { $0.0.lowercased() == lowercase }
    }

    /// The value of the first field with that name.
    package func field(_ name: String) -> String? {
        let lowercase = name.lowercased()
        return fields.first { $0.0.lowercased() == lowercase }?.1
    }

    /// The bytes of an HTTP/1.1 head, its empty line included.
    var bytes: [UInt8] {
        var text = line ?? "HTTP/1.1 \(status) \(ReplyHead.phrase(status))"
        text += "\r\n"
        for (name, value) in fields { text += "\(name): \(value)\r\n" }
        return Array((text + "\r\n").utf8)
    }

    private static func phrase(_ status: Int) -> String {
        switch status {
        case 100: "Continue"
        case 103: "Early Hints"
        case 200: "OK"
        case 206: "Partial Content"
        case 302: "Found"
        case 403: "Forbidden"
        case 404: "Not Found"
        case 412: "Precondition Failed"
        case 416: "Range Not Satisfiable"
        case 429: "Too Many Requests"
        case 503: "Service Unavailable"
        default: "Status"
        }
    }
}
