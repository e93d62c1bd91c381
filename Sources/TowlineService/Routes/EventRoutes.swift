import HTTPTypes
import Hummingbird
import TowlineWire

/// The event stream (server-sent events, HTML §9.2).
struct EventRoutes: Sendable {
    let feed: EventFeed

    func add(to table: inout RouteTable) {
        table.add(.head, Wire.base + "/events") { _, _ in Response(status: .ok, headers: Self.headers) }
        table.add(.get, Wire.base + "/events") { request, _ in
            let name = HTTPField.Name("Last-Event-ID")
            let lastEventID = name.flatMap { request.headers[$0] }
            let feed = feed
            return Response(
                status: .ok, headers: Self.headers,
                body: ResponseBody { writer in
                    var (text, place) = await feed.join(lastEventID: lastEventID)
                    do {
                        // Send a comment immediately, so that the client knows that it is connected.
                        try await writer.write(ByteBuffer(string: ": towline\n\n" + text))
                        while true {
                            switch await feed.next(after: place) {
                            case .events(let events, let last):
                                (text, place) = (events, last)
                            // An event, not a comment: scripts of a page do not see comments.
                            case .nothing: text = "event: alive\ndata: {}\n\n"
                            case .end:
                                await feed.leave()
                                return try await writer.finish(nil)
                            }
                            try await writer.write(ByteBuffer(string: text))
                        }
                    } catch {
                        await feed.leave()
                        throw error
                    }
                })
        }
    }

    /// The fields of a stream that no proxy may store, compress or collect: nginx compresses and collects responses
    /// unless `X-Accel-Buffering` forbids it.
    private static let headers: HTTPFields = {
        var fields: HTTPFields = [
            .contentType: "text/event-stream; charset=utf-8", .cacheControl: "no-store, no-transform",
        ]
        if let name = HTTPField.Name("X-Accel-Buffering") { fields[name] = "no" }
        return fields
    }()
}
