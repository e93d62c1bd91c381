import NIOCore
import NIOHPACK

/// One HTTP/2 connection: it reads frames and answers each request in a separate task.
struct HTTP2Connection {
    /// An error: the client broke a rule of RFC 9113 that this server depends on.
    struct ProtocolError: Error {}

    private let connection: Connection
    private let windows = FlowControl()
    private var received: ByteBuffer
    private var decoder = HPACKDecoder(allocator: ByteBufferAllocator())
    private var streams: [UInt32: HTTP2Stream] = [:]
    private var fieldBlock = ByteBuffer()

    /// Creates the HTTP/2 state of a connection after the client's preface.
    init(connection: Connection, received: [UInt8]) {
        self.connection = connection
        self.received = ByteBuffer(bytes: received)
    }

    mutating func run(_ buffers: inout AsyncStream<ByteBuffer>.AsyncIterator) async throws {
        // At most 100 streams at one time (SETTINGS_MAX_CONCURRENT_STREAMS, RFC 9113 §6.5.2).
        var settings: [UInt8] = [0, 3, 0, 0, 0, 100]
        if let window = connection.server.options.http2InitialWindow {
            settings += [0, 4] + withUnsafeBytes(of: window.bigEndian) { Array($0) }
        }
        try await put(HTTP2Frame.bytes(HTTP2Frame.Kind.settings, rest: settings))
        try await withThrowingDiscardingTaskGroup { group in
            defer {
                windows.closeAll()
                streams.values.forEach { $0.clientGone.open() }
            }
            while true {
                while let frame = HTTP2Frame.read(from: &received) {
                    guard let (stream, info) = try await take(frame) else { continue }
                    let server = connection.server
                    // The end of a stream ends only its own reply; the log shows how many bytes were sent.
                    group.addTask { [windows] in
                        _ = try? await server.answer(info, on: stream)
                        windows.close(stream.number)
                    }
                }
                guard var buffer = await buffers.next(isolation: nil) else { return }
                received.writeBuffer(&buffer)
                received.discardReadBytes()
            }
        }
    }

    /// Processes a frame. Returns the request that the frame completes, or `nil`.
    private mutating func take(_ frame: HTTP2Frame) async throws -> (HTTP2Stream, RequestInfo)? {
        var payload = frame.payload
        switch frame.kind {
        case HTTP2Frame.Kind.headers:
            fieldBlock = try unpadded(frame)
        case HTTP2Frame.Kind.continuation:
            fieldBlock.writeBuffer(&payload)
        case HTTP2Frame.Kind.resetStream:
            windows.close(frame.stream)
            streams.removeValue(forKey: frame.stream)?.clientGone.open()
            return nil
        case HTTP2Frame.Kind.settings where frame.flags & HTTP2Frame.Flag.acknowledge == 0:
            while let setting: UInt16 = payload.readInteger(), let value: UInt32 = payload.readInteger() {
                // SETTINGS_INITIAL_WINDOW_SIZE is number 4.
                if setting == 4 { windows.setInitial(Int(value)) }
            }
            try await put(HTTP2Frame.bytes(HTTP2Frame.Kind.settings, flags: HTTP2Frame.Flag.acknowledge))
            return nil
        case HTTP2Frame.Kind.ping where frame.flags & HTTP2Frame.Flag.acknowledge == 0:
            let bytes = Array(payload.readableBytesView)
            try await put(HTTP2Frame.bytes(HTTP2Frame.Kind.ping, flags: HTTP2Frame.Flag.acknowledge, rest: bytes))
            return nil
        case HTTP2Frame.Kind.windowUpdate:
            guard let count: UInt32 = payload.readInteger() else { throw ProtocolError() }
            windows.grant(Int(count & 0x7FFF_FFFF), stream: frame.stream)
            return nil
        default: return nil
        }
        guard frame.flags & HTTP2Frame.Flag.endHeaders != 0 else { return nil }
        return try open(frame.stream)
    }

    /// Returns a HEADERS payload without its padding and priority (RFC 9113 §6.2).
    private func unpadded(_ frame: HTTP2Frame) throws -> ByteBuffer {
        var payload = frame.payload
        var padding = 0
        if frame.flags & HTTP2Frame.Flag.padded != 0 {
            guard let count: UInt8 = payload.readInteger() else { throw ProtocolError() }
            padding = Int(count)
        }
        if frame.flags & HTTP2Frame.Flag.priority != 0 {
            guard payload.readableBytes >= 5 else { throw ProtocolError() }
            payload.moveReaderIndex(forwardBy: 5)
        }
        guard let block = payload.readSlice(length: payload.readableBytes - padding) else { throw ProtocolError() }
        return block
    }

    private mutating func open(_ number: UInt32) throws -> (HTTP2Stream, RequestInfo) {
        let fields = try decoder.decodeHeaders(from: &fieldBlock)
        fieldBlock = ByteBuffer()
        let stream = HTTP2Stream(channel: connection.channel, number: number, windows: windows)
        windows.open(number)
        streams[number] = stream
        let info = RequestInfo(
            connection: connection.number, index: 0, concurrent: 1, method: fields.first(name: ":method") ?? "",
            target: fields.first(name: ":path") ?? "",
            fields: fields.filter { !$0.name.hasPrefix(":") }.map { ($0.name, $0.value) },
            isTLS: connection.server.options.tls != nil, isHTTP2: true)
        return (stream, info)
    }

    private func put(_ frame: ByteBuffer) async throws { try await connection.channel.writeAndFlush(frame) }
}
