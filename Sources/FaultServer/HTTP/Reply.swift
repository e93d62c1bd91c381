/// The response to one request, as a sequence of steps.
package struct Reply: Sendable {
    /// The steps, performed in order.
    package var steps: [Step]

    /// Creates a reply from steps.
    package init(_ steps: [Step]) { self.steps = steps }

    /// Creates a whole response with a small body.
    package init(_ status: Int, _ fields: [(String, String)] = [], text: String = "") {
        let body = Array(text.utf8)
        var head = ReplyHead(status, fields)
        if status >= 200, status != 204, status != 304 { head.set("Content-Length", String(body.count)) }
        steps = body.isEmpty ? [.head(head)] : [.head(head), .bytes(body)]
    }

    /// One step. Steps with body bytes do nothing in the response to a `HEAD` request.
    package enum Step: Sendable {
        /// A status line and fields, or an HTTP/2 header block.
        case head(ReplyHead)
        /// Body bytes of a file.
        case content(FaultContent, Range<Int64>)
        /// The given body bytes.
        case bytes([UInt8])
        /// Body bytes of a file in the chunked coding, in chunks of `size` bytes, without the last chunk.
        case chunks(FaultContent, Range<Int64>, size: Int)
        /// The last chunk.
        case lastChunk
        /// Bytes that count neither as head nor as body, sent unchanged on the connection.
        case raw([UInt8])
        /// The bytes repeated `count` times; `nil` to repeat them until the client closes the connection.
        case repeated([UInt8], count: Int?)
        /// The head repeated `count` times; `nil` to repeat it until the client closes the connection.
        case repeatedHead(ReplyHead, count: Int?)
        /// Limits the following steps to this number of bytes per second; `nil` for no limit.
        case rate(Int64?)
        /// Waits for the duration, or until the client closes the connection.
        case pause(Duration)
        /// Waits until the gate is open, or until the client closes the connection.
        case wait(Gate)
        /// Sends no more bytes and keeps the connection until the client closes it.
        case stall
        /// Closes the connection normally: FIN, after TLS's close_notify.
        case close
        /// Closes a TLS connection without close_notify (RFC 9112 §9.8): only FIN.
        case closeWithoutNotify
        /// Sends FIN and continues to read.
        case closeOutput
        /// Aborts the connection: RST.
        case reset
        /// HTTP/2: RST_STREAM with the error code. HTTP/1.1: as ``reset``.
        case resetStream(code: UInt32)
        /// HTTP/2: GOAWAY that names `lastStream` as the last stream; `nil` for the stream of this reply. HTTP/1.1: no
        /// effect.
        case goAway(lastStream: UInt32?, code: UInt32)
    }

    /// Returns the reply with its first head changed.
    package func head(_ change: (inout ReplyHead) -> Void) -> Reply {
        var reply = self
        guard let place = reply.firstHead, case .head(var head) = reply.steps[place] else { return self }
        change(&head)
        reply.steps[place] = .head(head)
        return reply
    }

    /// Returns the reply with all steps after its first head replaced.
    package func body(_ steps: [Step]) -> Reply {
        guard let place = firstHead else { return self }
        return Reply(Array(self.steps[...place]) + steps)
    }

    /// Returns the reply followed by more steps.
    package func then(_ steps: Step...) -> Reply { Reply(self.steps + steps) }

    /// The status of the first head; `nil` without a head.
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

/// The status line and fields of a response. They are not validated, so that a fault can send invalid ones.
package struct ReplyHead: Sendable {
    /// The status code.
    package var status: Int
    /// The fields in order.
    package var fields: [(String, String)]
    /// The whole status line without its line end; `nil` for `HTTP/1.1`, the status and its phrase.
    package var line: String?

    /// Creates a head.
    package init(_ status: Int, _ fields: [(String, String)] = [], line: String? = nil) {
        self.status = status
        self.fields = fields
        self.line = line
    }

    /// Removes all fields with the given name and adds the field at the end.
    package mutating func set(_ name: String, _ value: String) {
        remove(name)
        fields.append((name, value))
    }

    /// Removes all fields with the given name.
    package mutating func remove(_ name: String) {
        let lowercase = name.lowercased()
        fields.removeAll { $0.0.lowercased() == lowercase }
    }

    /// Returns the value of the first field with the given name, or `nil`.
    package func field(_ name: String) -> String? {
        let lowercase = name.lowercased()
        return fields.first { $0.0.lowercased() == lowercase }?.1
    }

    /// The bytes of an HTTP/1.1 head, including its empty line.
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
