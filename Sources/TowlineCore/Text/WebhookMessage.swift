/// The message to a webhook (a URL that the user named for notifications) about a download: one JSON object on one line
/// (RFC 8259).
package struct WebhookMessage: Hashable, Sendable {
    /// The name of the event that the message reports, such as `finished`.
    package var event: String
    /// The identifier of the download, in its text form.
    package var id: String
    /// The name of the file.
    package var name: String
    /// The path of the file, including its name.
    package var path: String
    /// The length of the file in bytes.
    package var bytes: Int64
    /// The checksum that verified the file; `nil` if no checksum was verified.
    package var checksum: Checksum?
    /// The time of the event, in seconds since 1970.
    package var time: Int64

    /// Creates the message about an event of a download.
    package init(
        event: String, id: String, name: String, path: String, bytes: Int64, checksum: Checksum?, time: Int64
    ) {
        self.event = event
        self.id = id
        self.name = name
        self.path = path
        self.bytes = bytes
        self.checksum = checksum
        self.time = time
    }

    /// The value of the header field `Idempotency-Key`: the same in every attempt to deliver the message, also after a
    /// restart of the process, so that a receiver can ignore a repeated message. The key is a string of a structured
    /// field (RFC 8941 §3.3.3); characters that such a string cannot contain are percent-encoded.
    package var idempotencyKey: String {
        "\"" + "\(id)-\(event)-\(time)".utf8.map(Self.plain).joined() + "\""
    }

    private static func plain(_ byte: UInt8) -> String {
        let isPlain = ASCII.isDigit(byte) || ASCII.isLetter(byte) || byte == 0x2D || byte == 0x2E || byte == 0x5F
        return isPlain ? String(Unicode.Scalar(byte)) : "%" + Hexadecimal.encoded([byte])
    }

    /// The JSON text of the message, the body of the request to the webhook.
    package var json: String {
        var object = JSONObject()
        object.add("event", event)
        object.add("id", id)
        object.add("name", name)
        object.add("path", path)
        object.add("bytes", bytes)
        if let checksum { object.add("checksum", checksum.description) } else { object.addNull("checksum") }
        object.add("time", HTTPDate(secondsSince1970: time).timestamp)
        return object.closed
    }
}
