internal import Foundation
import NIOCore

/// Limits the memory that the kernel holds for a connection, and closes a connection whose client does not read the
/// response.
///
/// The limits of a stranger rise when its client has shown the access token or a session (`ClientAuthenticated`). An
/// idle event stream has no unread bytes, so no limit applies.
///
/// `@unchecked Sendable`: everything happens on the event loop of its channel.
final class ResponseWatch: ChannelDuplexHandler, @unchecked Sendable {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer
    typealias OutboundIn = IOData
    typealias OutboundOut = IOData

    /// The start of `tcp_info` in `linux/tcp.h` as 64-bit words. The fields below exist since Linux 4.6.
    private struct TCPInformation {
        // swift-format-ignore
        let words: (
            UInt64, UInt64, UInt64, UInt64, UInt64, UInt64, UInt64, UInt64, UInt64, UInt64,
            UInt64, UInt64, UInt64, UInt64, UInt64, UInt64, UInt64, UInt64, UInt64
        )

        /// `tcpi_bytes_acked` at offset 120.
        var acknowledgedBytes: UInt64 { words.15 }
        /// True if the client has not acknowledged all bytes: `tcpi_unacked` at offset 24 and `tcpi_notsent_bytes` at
        /// offset 144, 32 bits each.
        var hasUnreadBytes: Bool { UInt32(truncatingIfNeeded: words.3) > 0 || UInt32(truncatingIfNeeded: words.18) > 0 }
    }

    /// Half of the limit of 64 KiB, because the kernel doubles the value of `SO_SNDBUF` and `SO_RCVBUF` (socket(7)).
    private static let strangerBuffer = 32 << 10
    /// `SO_SNDBUF` of an authenticated client if the kernel cannot adapt the size.
    private static let fixedBuffer = 1 << 20
    /// `SO_BUF_LOCK` (Linux 5.14): with 0, the kernel adapts the sizes of the buffers again.
    private static let bufferLock = NIOBSDSocket.Option(rawValue: 72)
    /// `TCP_INFO` of tcp(7).
    private static let tcpInformation = NIOBSDSocket.Option(rawValue: 11)

    private let strangerLimit: TimeAmount
    private let authenticatedLimit: TimeAmount
    private var isAuthenticated = false
    private var check: Scheduled<Void>?
    private var acknowledgedBytes: UInt64 = 0
    private var progressTime = NIODeadline.now()

    init(_ configuration: ServiceConfiguration) {
        strangerLimit = TimeAmount(configuration.strangerStallTimeout)
        authenticatedLimit = TimeAmount(configuration.stallTimeout)
    }

    /// Sets the limits of a stranger. Called before the first byte is read or written.
    func open(_ channel: any Channel) {
        guard let options = channel.syncOptions else { return }
        // Without these two, one read can take 256 KiB from the kernel.
        try? options.setOption(.maxMessagesPerRead, value: 1)
        try? options.setOption(
            .recvAllocator, value: AdaptiveRecvByteBufferAllocator(minimum: 512, initial: 2048, maximum: 4096))
        try? options.setOption(.socketOption(.so_sndbuf), value: Self.strangerBuffer)
        try? options.setOption(.socketOption(.so_rcvbuf), value: Self.strangerBuffer)
    }

    func handlerRemoved(context: ChannelHandlerContext) { check?.cancel() }

    func triggerUserOutboundEvent(context: ChannelHandlerContext, event: Any, promise: EventLoopPromise<Void>?) {
        guard event is ClientAuthenticated else {
            return context.triggerUserOutboundEvent(event, promise: promise)
        }
        promise?.succeed()
        guard !isAuthenticated else { return }
        isAuthenticated = true
        let channel = context.channel
        (channel as? any SocketOptionProvider)?
            .unsafeSetSocketOption(level: .socket, name: Self.bufferLock, value: CInt(0))
            .whenFailure { _ in
                _ = channel.setOption(.socketOption(.so_sndbuf), value: Self.fixedBuffer)
            }
    }

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        if check == nil {
            progressTime = .now()
            schedule(context)
        }
        context.write(data, promise: promise)
    }

    private func schedule(_ context: ChannelHandlerContext) {
        check = context.eventLoop.assumeIsolated().scheduleTask(in: .nanoseconds(strangerLimit.nanoseconds / 6)) {
            self.check = nil
            self.measure(context)
        }
    }

    /// Closes the connection if the client has read nothing for too long. Waits for the next write if the client has
    /// read everything.
    private func measure(_ context: ChannelHandlerContext) {
        let channel = context.channel
        guard channel.isActive, let provider = channel as? any SocketOptionProvider,
            let buffered = try? channel.syncOptions?.getOption(.bufferedWritableBytes)
        else { return }
        let result: EventLoopFuture<TCPInformation> = provider.unsafeGetSocketOption(
            level: .tcp, name: Self.tcpInformation)
        result.assumeIsolated().whenSuccess { information in
            guard buffered > 0 || information.hasUnreadBytes else { return }
            if information.acknowledgedBytes != self.acknowledgedBytes {
                self.acknowledgedBytes = information.acknowledgedBytes
                self.progressTime = .now()
            }
            let limit = self.isAuthenticated ? self.authenticatedLimit : self.strangerLimit
            if NIODeadline.now() - self.progressTime >= limit { return ConnectionShare.reset(channel) }
            self.schedule(context)
        }
    }
}

/// An event of the pipeline: the client of the connection has shown the access token or a session.
struct ClientAuthenticated: Sendable {}
