import NIOCore

/// The side of a connection, or of an HTTP/2 stream, that a reply is performed on.
protocol ResponseStream: Sendable {
    /// Open as soon as nobody reads the reply any more.
    var clientGone: Gate { get }
    /// Whether body bytes are put into frames (HTTP/2), so that the chunked coding does not apply.
    var framesBody: Bool { get }
    /// The bytes that a head becomes on the wire.
    func headBytes(_ head: ReplyHead) throws -> [UInt8]
    /// Sends bytes that are framed already. The future is complete when the kernel accepted them.
    func send(_ buffer: ByteBuffer) -> EventLoopFuture<Void>
    /// Sends body bytes, which HTTP/2 puts into frames as its windows allow. `accepted` is called with the number of
    /// body bytes each time the kernel accepted some; the future is complete when it accepted all.
    func sendBody(_ buffer: ByteBuffer, accepted: @escaping @Sendable (Int) -> Void) async throws
        -> EventLoopFuture<Void>
    /// The reply has no more steps.
    func finish() async throws
    /// Keeps the system's send buffer small, so that what the kernel accepted is near to what a client could read.
    func limitSendBuffer() async
    /// Performs a step that ends or disturbs the connection.
    func end(_ step: Reply.Step) async throws
}
