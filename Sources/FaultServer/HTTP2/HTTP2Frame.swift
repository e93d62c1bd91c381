import NIOCore

/// An HTTP/2 frame (RFC 9113 §4.1), with functions to read and write frames.
struct HTTP2Frame {
    /// The types of RFC 9113 §6; others are ignored.
    enum Kind {
        static let data: UInt8 = 0
        static let headers: UInt8 = 1
        static let resetStream: UInt8 = 3
        static let settings: UInt8 = 4
        static let ping: UInt8 = 6
        static let goAway: UInt8 = 7
        static let windowUpdate: UInt8 = 8
        static let continuation: UInt8 = 9
    }

    /// The flags of RFC 9113 §6.
    enum Flag {
        static let endStream: UInt8 = 0x1
        static let acknowledge: UInt8 = 0x1
        static let endHeaders: UInt8 = 0x4
        static let padded: UInt8 = 0x8
        static let priority: UInt8 = 0x20
    }

    /// The maximum payload in bytes that every peer accepts (RFC 9113 §4.2).
    static let maximumPayload = 16_384

    var kind: UInt8
    var flags: UInt8
    var stream: UInt32
    var payload: ByteBuffer

    /// Takes the next frame from the buffer; `nil` if it is incomplete.
    static func read(from buffer: inout ByteBuffer) -> HTTP2Frame? {
        let start = buffer.readerIndex
        guard let top: UInt8 = buffer.getInteger(at: start), let low: UInt16 = buffer.getInteger(at: start + 1),
            buffer.readableBytes >= 9 + (Int(top) << 16 | Int(low)), let kind: UInt8 = buffer.getInteger(at: start + 3),
            let flags: UInt8 = buffer.getInteger(at: start + 4), let stream: UInt32 = buffer.getInteger(at: start + 5)
        else { return nil }
        buffer.moveReaderIndex(forwardBy: 9)
        let payload = buffer.readSlice(length: Int(top) << 16 | Int(low)) ?? ByteBuffer()
        return HTTP2Frame(kind: kind, flags: flags, stream: stream & 0x7FFF_FFFF, payload: payload)
    }

    /// Returns the nine bytes before a payload.
    static func header(_ kind: UInt8, flags: UInt8 = 0, stream: UInt32, length: Int) -> ByteBuffer {
        var buffer = ByteBuffer()
        buffer.writeInteger(UInt8(truncatingIfNeeded: length >> 16))
        buffer.writeInteger(UInt16(truncatingIfNeeded: length))
        buffer.writeInteger(kind)
        buffer.writeInteger(flags)
        buffer.writeInteger(stream)
        return buffer
    }

    /// Returns a whole frame of 32-bit numbers followed by bytes.
    static func bytes(
        _ kind: UInt8, flags: UInt8 = 0, stream: UInt32 = 0, numbers: [UInt32] = [], rest: [UInt8] = []
    ) -> ByteBuffer {
        var buffer = header(kind, flags: flags, stream: stream, length: numbers.count * 4 + rest.count)
        for number in numbers { buffer.writeInteger(number) }
        buffer.writeBytes(rest)
        return buffer
    }

    /// Returns the frames of a field section: HEADERS, and CONTINUATION if needed.
    static func headers(_ fields: [(String, String)], stream: UInt32) -> [UInt8] {
        var block = HeaderBlock.bytes(fields)[...]
        var frames = ByteBuffer()
        var kind = Kind.headers
        repeat {
            let piece = block.prefix(maximumPayload)
            block = block.dropFirst(piece.count)
            let flags = block.isEmpty ? Flag.endHeaders : 0
            var frame = bytes(kind, flags: flags, stream: stream, rest: Array(piece))
            frames.writeBuffer(&frame)
            kind = Kind.continuation
        } while !block.isEmpty
        return Array(frames.readableBytesView)
    }
}

/// An encoder of field sections without compression: each field is a literal without indexing (RFC 7541 §6.2.2). The
/// encoder has no state between sections, and a fault may put any bytes into a field.
enum HeaderBlock {
    static func bytes(_ fields: [(String, String)]) -> [UInt8] {
        fields.flatMap { name, value in [0] + string(name.lowercased()) + string(value) }
    }

    private static func string(_ text: String) -> [UInt8] {
        let bytes = Array(text.utf8)
        return length(bytes.count) + bytes
    }

    /// Returns an integer with a prefix of seven bits (RFC 7541 §5.1).
    private static func length(_ count: Int) -> [UInt8] {
        guard count >= 127 else { return [UInt8(count)] }
        var result: [UInt8] = [127]
        var rest = count - 127
        while rest >= 128 {
            result.append(UInt8(rest % 128 + 128))
            rest /= 128
        }
        return result + [UInt8(rest)]
    }
}
