import NIOCore
import NIOHTTP1
import NIOHTTPTypesHTTP1

/// Refuses request heads that another HTTP parser in front of the service could read differently, so that no part of a
/// request can become a second one (RFC 9112 §6.3, §11.2). Handles what needs the version or the order of responses:
/// `Expect: 100-continue`, absolute targets, and responses without chunks to HTTP/1.0.
///
/// NIO's decoder refuses malformed lines, sizes and chunks. The HTTP types above it have neither the version nor two
/// Host fields.
///
/// `@unchecked Sendable`: everything happens on the event loop of its channel.
final class StrictRequestHandler: ChannelDuplexHandler, RemovableChannelHandler, @unchecked Sendable {
    typealias InboundIn = HTTPServerRequestPart
    typealias InboundOut = HTTPServerRequestPart
    typealias OutboundIn = HTTPServerResponsePart
    typealias OutboundOut = HTTPServerResponsePart

    /// A request whose response is not complete.
    private struct Unanswered {
        let version: HTTPVersion
        /// The service closes the connection after the response.
        let isLast: Bool
        /// The client waits for a response with the status 100 before it sends the body.
        var awaitsContinue: Bool
    }

    private var hasRefused = false
    private var unanswered: [Unanswered] = []

    /// Adds a handler between the decoder of a channel and the conversion to HTTP types.
    static func add(to pipeline: ChannelPipeline) throws {
        let operations = pipeline.syncOperations
        try operations.addHandler(
            StrictRequestHandler(), position: .before(try operations.handler(type: HTTP1ToHTTPServerCodec.self)))
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        if hasRefused { return }
        guard case .head(var head) = unwrapInboundIn(data) else {
            if !unanswered.isEmpty { unanswered[unanswered.count - 1].awaitsContinue = false }
            return context.fireChannelRead(data)
        }
        guard Self.resolveTarget(&head), Self.isClear(head) else {
            hasRefused = true
            // The server answers this error with 400 and closes the connection.
            return context.fireErrorCaught(HTTPParserError.invalidHeaderToken)
        }
        let isPersistent = Self.isPersistent(head)
        // NIO's decoder reads nothing after a request to change the protocol.
        let isLast =
            !isPersistent || head.headers.contains(name: "Upgrade") || Self.words(head, "Connection").contains("close")
        if isLast { head.headers.replaceOrAdd(name: "Connection", value: "close") }
        unanswered.append(
            Unanswered(
                version: isPersistent ? .http1_1 : .http1_0, isLast: isLast,
                awaitsContinue: isPersistent && Self.words(head, "Expect").contains("100-continue")))
        context.fireChannelRead(wrapInboundOut(.head(head)))
        if unanswered.count == 1 { sendContinue(context) }
    }

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        var part = unwrapOutboundIn(data)
        if case .head(var head) = part, let request = unanswered.first {
            head.version = request.version
            if request.isLast { head.headers.replaceOrAdd(name: "Connection", value: "close") }
            unanswered[0].awaitsContinue = false
            part = .head(head)
        }
        context.write(wrapOutboundOut(part), promise: promise)
        if case .end = part, !unanswered.isEmpty {
            unanswered.removeFirst()
            sendContinue(context)
        }
    }

    /// Tells the client of the oldest unanswered request to send the body, if it waits for that (RFC 9110 §10.1.1).
    private func sendContinue(_ context: ChannelHandlerContext) {
        guard let first = unanswered.first, first.awaitsContinue else { return }
        unanswered[0].awaitsContinue = false
        context.writeAndFlush(
            wrapOutboundOut(.head(HTTPResponseHead(version: .http1_1, status: .continue))), promise: nil)
    }

    /// Replaces an absolute target by its path, as clients send it to a proxy (RFC 9112 §3.2.2). Returns false if the
    /// target names another host than the field `Host`.
    static func resolveTarget(_ head: inout HTTPRequestHead) -> Bool {
        let scheme = "http://"
        guard head.uri.prefix(scheme.count).lowercased() == scheme else { return true }
        let rest = head.uri.dropFirst(scheme.count)
        let authority = rest.prefix { !"/?".contains($0) }
        guard !authority.isEmpty, head.headers["Host"].map({ $0.lowercased() }) == [authority.lowercased()] else {
            return false
        }
        let target = rest.dropFirst(authority.count)
        head.uri = target.hasPrefix("/") ? String(target) : "/" + target
        return true
    }

    /// Returns whether the host, the end of the body and the target of a request are unambiguous.
    static func isClear(_ head: HTTPRequestHead) -> Bool {
        let hosts = head.headers["Host"]
        guard hosts.count == 1 || hosts.isEmpty && !isPersistent(head), hosts.allSatisfy({ HostList.isValid($0) })
        else { return false }
        guard head.uri.hasPrefix("/") || head.uri == "*" && head.method == .OPTIONS else { return false }
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
