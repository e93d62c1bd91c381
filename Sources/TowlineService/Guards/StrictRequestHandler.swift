import NIOCore
import NIOHTTP1
import NIOHTTPTypesHTTP1

/// Refuses request heads that another HTTP parser in front of the service could read differently, so that no part of a
/// request can become a second one (RFC 9112 §6.3, §11.2). Closes connections of HTTP/1.0 after the response.
///
/// NIO's decoder refuses malformed lines, sizes and chunks. The HTTP types above it have neither the version nor two
/// Host fields.
///
/// `@unchecked Sendable`: everything happens on the event loop of its channel.
final class StrictRequestHandler: ChannelInboundHandler, RemovableChannelHandler, @unchecked Sendable {
    typealias InboundIn = HTTPServerRequestPart
    typealias InboundOut = HTTPServerRequestPart

    private var hasRefused = false

    /// Adds a handler between the decoder of a channel and the conversion to HTTP types.
    static func add(to pipeline: ChannelPipeline) throws {
        let operations = pipeline.syncOperations
        try operations.addHandler(
            StrictRequestHandler(), position: .before(try operations.handler(type: HTTP1ToHTTPServerCodec.self)))
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        if hasRefused { return }
        guard case .head(var head) = unwrapInboundIn(data) else { return context.fireChannelRead(data) }
        guard Self.isClear(head) else {
            hasRefused = true
            // The server answers this error with 400 and closes the connection.
            return context.fireErrorCaught(HTTPParserError.invalidHeaderToken)
        }
        if !Self.isPersistent(head) || Self.words(head, "Connection").contains("close") {
            head.headers.replaceOrAdd(name: "Connection", value: "close")
        }
        context.fireChannelRead(wrapInboundOut(.head(head)))
    }

    /// Returns whether the host, the end of the body and the target of a request are unambiguous.
    static func isClear(_ head: HTTPRequestHead) -> Bool {
        let hosts = head.headers["Host"]
        guard hosts.count == 1 || hosts.isEmpty && !isPersistent(head) else { return false }
        // The host of an absolute target would count instead of the field.
        guard head.uri.hasPrefix("/") || head.uri == "*" else { return false }
        let lengths = head.headers["Content-Length"]
        let codings = head.headers["Transfer-Encoding"]
        guard !codings.isEmpty else {
            return lengths.count <= 1 && lengths.allSatisfy { $0.utf8.allSatisfy { (48...57).contains($0) } }
        }
        return isPersistent(head) && lengths.isEmpty && codings.count == 1
            && codings[0].lowercased() == "chunked"
    }

    /// Returns whether the version is 1.1 or newer, which has persistent connections and chunks.
    private static func isPersistent(_ head: HTTPRequestHead) -> Bool { head.version.minor >= 1 }

    private static func words(_ head: HTTPRequestHead, _ name: String) -> [String] {
        head.headers[canonicalForm: name].map { $0.lowercased() }
    }
}
