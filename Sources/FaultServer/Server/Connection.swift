import NIOCore
import Synchronization

/// One accepted connection: it reads requests in order and performs a reply to each.
struct Connection {
    let server: FaultServer
    let channel: any Channel
    let inbound: Inbound
    let number: Int

    func run() async {
        do {
            if try await !performArrival() { try await serveRequests() }
        } catch {
            // The client closed the connection or the server stops: the log shows how many bytes were sent.
        }
        // The reply may have closed the connection already.
        try? await channel.close()
        inbound.ended()
    }

    /// Performs the steps for a new connection. Returns whether they closed the connection; `false` without steps.
    private func performArrival() async throws -> Bool {
        let open = server.log.records.openConnections
        guard let steps = server.options.onAccept(ServerOptions.Arrival(number: number, open: open)) else {
            return false
        }
        let stream = HTTP1Stream(channel: channel, clientGone: inbound.clientGone)
        var performer = ReplyPerformer(
            stream: stream, carriesBody: true, sentStatus: { _ in }, accepted: { _ in }, beforeLastWrite: {},
            sharedPacer: nil)
        return try await performer.perform(Reply(steps)) == .closed
    }

    private func serveRequests() async throws {
        var parser = RequestParser()
        var buffers = inbound.buffers.makeAsyncIterator()
        var isFirst = true
        while true {
            if server.options.http2, isFirst, !parser.bytes.isEmpty, parser.mayBeHTTP2 {
                if parser.isHTTP2 {
                    let rest = Array(parser.bytes.dropFirst(RequestParser.http2Preface.count))
                    var connection = HTTP2Connection(connection: self, received: rest)
                    return try await connection.run(&buffers)
                }
            } else if let head = parser.next() {
                isFirst = false
                guard try await serve(head) == .open else { return }
                continue
            }
            guard let buffer = await buffers.next(isolation: nil) else { return }
            parser.append(buffer.readableBytesView)
        }
    }

    private func serve(_ head: RequestParser.Head) async throws -> ReplyPerformer.Ending {
        let info = RequestInfo(
            connection: number, index: 0, concurrent: 1, method: head.method, target: head.target, fields: head.fields,
            isTLS: server.options.tls != nil, isHTTP2: false)
        let stream = HTTP1Stream(channel: channel, clientGone: inbound.clientGone)
        let (reply, ending) = try await server.answer(info, on: stream)
        let wantsClose = info.field("Connection")?.lowercased() == "close" || head.version == "HTTP/1.0"
        return wantsClose || !reply.delimitsItself ? .closed : ending
    }
}

extension FaultServer {
    /// Finds the reply to a request, performs it and logs both.
    func answer(
        _ info: RequestInfo, on stream: any ResponseStream
    ) async throws -> (Reply, ReplyPerformer.Ending) {
        let resource = directory.find(info.path)
        let context = resource?.begin(info)
        let number = log.came(context?.request ?? info)
        // A client with the whole response may send its next request before the last write of this one returns. This
        // request must then not count as running.
        let isRunning = Atomic(true)
        let end = { (isCut: Bool) in
            if isRunning.exchange(false, ordering: .relaxed) { resource?.end(isCut: isCut) }
        }
        defer {
            log.ended(request: number)
            end(true)
        }
        let reply = context.map { $0.resource.behaviour.reply($0) } ?? Reply(404, text: "resource not found\n")
        let rate = context?.resource.rate
        if rate != nil { await stream.limitSendBuffer() }
        var performer = ReplyPerformer(
            stream: stream, carriesBody: info.method != "HEAD",
            sentStatus: { [log] in log.sent(status: $0, request: number) },
            accepted: { [log] count in
                log.sent(bodyBytes: Int64(count), request: number)
                resource?.served(Int64(count))
            },
            beforeLastWrite: { end(false) }, sharedPacer: sharedPacer, pacer: rate.map(Pacer.init))
        let ending = try await performer.perform(reply)
        end(false)
        return (reply, ending)
    }
}

extension Reply {
    /// `true` if an HTTP/1.1 client detects the end of the reply without the end of the connection (RFC 9112 §6.3).
    fileprivate var delimitsItself: Bool {
        guard case .head(let head)? = steps.last(where: { if case .head = $0 { true } else { false } }) else {
            return false
        }
        return head.field("Content-Length") != nil || head.field("Transfer-Encoding") != nil || head.status == 204
            || head.status == 304
    }
}
