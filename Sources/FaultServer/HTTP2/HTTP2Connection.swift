import NIOCore

struct HTTP2Connection {
    let connection: Connection
    let received: [UInt8]
    func run(_ buffers: inout AsyncStream<ByteBuffer>.AsyncIterator) async throws {}
}
