import NIOCore

/// The output for a reply: an HTTP/1.1 connection or an HTTP/2 stream.
protocol ResponseStream: Sendable {
    /// A gate that opens when the client no longer reads the reply.
    var clientGone: Gate { get }
    /// `true` if body bytes are sent in frames (HTTP/2), so that the chunked coding does not apply.
    var framesBody: Bool { get }
    /// Returns the encoded bytes of a head.
    func headBytes(_ head: ReplyHead) throws -> [UInt8]
    /// Sends bytes that are already framed. The future completes when the kernel has accepted them.
    func send(_ buffer: ByteBuffer) -> EventLoopFuture<Void>
    /// Sends body bytes, in HTTP/2 as frames within its windows. Calls `accepted` with the number of body bytes each
    /// time the kernel has accepted some. The future completes when the kernel has accepted all bytes.
    func sendBody(_ buffer: ByteBuffer, accepted: @escaping @Sendable (Int) -> Void) async throws
        -> EventLoopFuture<Void>
    /// Completes the reply after its last step.
    func finish() async throws
    /// Reduces the system's send buffer, so that the kernel accepts few more bytes than the client has read.
    func limitSendBuffer() async
    /// Performs a step that ends or disturbs the connection.
    func end(_ step: Reply.Step) async throws
}
