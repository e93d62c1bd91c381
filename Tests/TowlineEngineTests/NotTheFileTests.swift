import FaultServer
import Testing
import TowlineCore
import TransferSimulation

@testable import TowlineEngine

/// Tests responses that are not the file although their heads may say so: errors instead of a part, bodies that end
/// with the connection, compressed pages (docs/http-rules.md).
@Suite("A response that is not the file") struct NotTheFileTests {
    private static func version(_ length: Int64) -> Version { Version(seed: 1, length: length) }

    private static func site(
        _ version: Version, type: String? = "application/zip", rate: Int64? = nil
    ) -> SimulatedSite {
        SimulatedSite(Resource(version, contentType: type, rate: rate))
    }

    /// Returns a response that ends where the connection does, and has neither length nor validators.
    private static func unending(_ body: [Reply.Step], _ type: String? = nil) -> Reply {
        Reply([.head(ReplyHead(200, type.map { [("Content-Type", $0)] } ?? []))] + body + [.close])
    }

    /// The framing of an error.
    enum Framing: CaseIterable { case chunks, length, connection }

    /// Returns an error with the head of the requested part.
    private static func part(_ context: RequestContext, _ type: String, _ text: String, _ framing: Framing) -> Reply {
        let body = Reply.Step.bytes(Array(text.utf8))
        let end: [Framing: Reply.Step] = [.chunks: .lastChunk, .connection: .close]
        return context.correct.body([body] + [end[framing]].compactMap(\.self)).head {
            $0.set("Content-Type", type)
            $0.remove("Content-Length")
            if framing == .chunks { $0.set("Transfer-Encoding", "chunked") }
            if framing == .length { $0.set("Content-Length", String(text.utf8.count)) }
        }
    }

    /// Returns the first response with a part of its body, after which the connection breaks.
    private static func broken(_ context: RequestContext, at percentage: Int64 = 60) -> Reply {
        let count = context.version.length * percentage / 100
        return context.correct.body([.content(context.version.content, 0..<count), .reset])
    }

    @Test(
        "that ends with the connection is incomplete if the length was known before",
        arguments: [(5000, 0), (400_000, 60), (3_000_000, 60), (3_000_000, 0), (400_000, 0), (3_000_000, nil)],
        [nil, "text/plain", "application/json", "application/octet-stream"])
    func knownLength(_ form: (length: Int64, percentage: Int64?), _ type: String?) throws {
        let (length, percentage) = form
        var version = Self.version(length)
        for hasValidator in [true, false] {
            if !hasValidator { (version.etag, version.lastModified) = (.absent, nil) }
            let beginning = Reply.Step.content(version.content, 0..<length / 3)
            for body in [[beginning], [.bytes(Array("busy".utf8))], []] {
                let site = Self.site(version)
                if percentage == nil { try site.interrupt(after: length / 2) }
                let first = site.server.requests.count
                site.server.set(
                    Behaviour { context in
                        guard context.request.index == first, let percentage else { return Self.unending(body, type) }
                        return Self.broken(context, at: percentage)
                    }, for: SimulatedSite.path)
                let outcome = try site.download { $0.maximumTries = 3 }
                #expect(!outcome.succeeded && outcome.code == .transient, "\(outcome.message)")
                #expect(site.hasPart || length < 1 << 20 || percentage == 0)
                site.server.set(.correct, for: SimulatedSite.path)
                #expect(try site.download().succeeded)
                #expect(site.published([version]) != nil)
            }
        }
    }

    @Test(
        "is refused if an earlier response described the file, even if no byte of it arrived",
        arguments: ["text/plain", "application/json", "application/octet-stream", "none"], Framing.allCases)
    func describedBefore(_ type: String, _ framing: Framing) throws {
        let lengths: [Int64] = [5000, 400_000, 3_000_000]
        for (length, text) in lengths.flatMap({ length in ["busy", ""].map { (length, $0) } }) {
            let version = Self.version(length)
            let site = Self.site(version)
            site.server.set(
                Behaviour { context in
                    if context.request.index == 0 { return Self.broken(context, at: 0) }
                    return Self.part(context, type, text, framing).head {
                        $0.status = 200
                        for name in ["Content-Range", "ETag", "Last-Modified"] { $0.remove(name) }
                        if type == "none" { $0.remove("Content-Type") }
                    }
                }, for: SimulatedSite.path)
            let outcome = try site.download { $0.maximumTries = 3 }
            #expect(!outcome.succeeded && outcome.code == .transient, "\(length) \(text): \(outcome.message)")
            site.server.set(.correct, for: SimulatedSite.path)
            #expect(try site.download().succeeded)
            #expect(site.published([version]) != nil)
        }
    }

    @Test("is accepted without a length if it has a new validator, or as many bytes") func otherLength() throws {
        let (old, new) = (Self.version(3_000_000), Version(seed: 2, length: 2_000_000))
        let fields = [("Content-Type", "application/zip"), ("ETag", "\"new\"")]
        for isNew in [true, false] {
            let site = Self.site(old)
            site.server.set(
                Behaviour { context in
                    if context.request.index == 0 { return Self.broken(context) }
                    let version = isNew ? new : old
                    return Self.unending([.content(version.content, 0..<version.length)]).head {
                        if isNew { for (name, value) in fields { $0.set(name, value) } }
                    }
                }, for: SimulatedSite.path)
            let outcome = try site.download()
            #expect(outcome.succeeded, "\(outcome.message)")
            #expect(site.published([isNew ? new : old]) != nil)
        }
    }

    @Test(
        "costs no bytes if it claims to be a part of the file",
        arguments: [
            ("text/html", "<html><body>error, too many connections</body></html>"),
            ("application/json", "{\"error\":\"expired\"}"), ("application/xml", "<Error/>"), ("text/plain", "busy"),
        ], Framing.allCases)
    func errorAsPart(_ error: (type: String, text: String), _ framing: Framing) throws {
        let version = Self.version(3_000_000)
        let types = ["application/zip", "application/octet-stream", nil, "text/csv"]
        for (connections, type) in [1, 4].flatMap({ count in types.map { (count, $0) } }) {
            // A text of the kind of the file is not distinguished from it.
            if type == "text/csv", error.type == "text/plain" { continue }
            let site = Self.site(version, type: type, rate: connections > 1 ? 1_000_000 : nil)
            site.server.set(
                Behaviour { context in
                    switch context.request.index {
                    case 0: connections > 1 ? context.correct : Self.broken(context)
                    case 1...2: Self.part(context, error.type, error.text, framing)
                    default: context.correct
                    }
                }, for: SimulatedSite.path)
            let outcome = try site.download { $0.connections = connections }
            #expect(outcome.succeeded, "\(outcome.message)")
            #expect(site.published([version]) != nil, "\(error) \(framing) \(connections) \(type ?? "no type")")
            let whole = site.server.requests.filter { ($0.field("Range") ?? "bytes=0-") == "bytes=0-" }
            #expect(whole.count == 1, "\(site.server.requests.map { $0.field("Range") ?? "none" })")
        }
    }

    @Test(
        "costs no bytes if it claims to be the whole file", arguments: ["text/plain", "application/json", "text/html"])
    func errorAsWhole(_ type: String) throws {
        let version = Self.version(3_000_000)
        for framing in Framing.allCases {
            let site = Self.site(version)
            let first = try site.interrupt(after: 2_000_000).requests
            site.server.set(
                Behaviour { context in
                    guard context.request.index < first + 2 else { return context.correct }
                    return Self.part(context, type, "busy", framing).head {
                        $0.status = 200
                        $0.remove("Content-Range")
                    }
                }, for: SimulatedSite.path)
            let outcome = try site.download()
            #expect(outcome.succeeded && site.published([version]) != nil, "\(outcome.message)")
            #expect(site.server.requests.count { ($0.field("Range") ?? "bytes=0-") == "bytes=0-" } < 3)
            #expect(site.server.served < 3_200_000, "\(framing)")
        }
    }

    /// A part that is only labelled as a page is accepted.
    @Test func mislabelledPart() throws {
        let version = Self.version(3_000_000)
        let site = Self.site(version)
        site.server.set(
            Behaviour { context in
                context.request.index == 0
                    ? Self.broken(context) : context.correct.head { $0.set("Content-Type", "text/html") }
            }, for: SimulatedSite.path)
        let outcome = try site.download()
        #expect(outcome.succeeded && site.published([version]) != nil, "\(outcome.message)")
        #expect(site.server.requests.count == 2)
    }

    @Test("is a page if it is compressed and labelled as one", arguments: ["/a.tar.gz", "/a.tgz", "/a.zip", "/a.iso"])
    func compressedPage(_ path: String) throws {
        let page: [UInt8] = [0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 3, 0x33, 0x4E, 3, 0]
        for length in [Int64(page.count), nil] {
            let resource = Resource(
                Self.version(1000),
                behaviour: Behaviour { _ in
                    let fields = [("Content-Type", "text/html"), ("Content-Encoding", "gzip")]
                    let size = length.map { [("Content-Length", String($0))] } ?? []
                    return Reply([.head(ReplyHead(200, fields + size)), .bytes(page), .close])
                })
            let site = SimulatedSite(resource, more: [path: resource])
            let outcome = try site.download(path) { $0.maximumTries = 2 }
            #expect(!outcome.succeeded && outcome.message.contains("web page"), "\(outcome.message)")
            let accepted = try site.download(path) { $0.acceptsWebPages = true }
            #expect(accepted.succeeded, "\(accepted.message)")
        }
    }

    @Test(
        "makes a link expired that worked before",
        arguments: ["", "busy", "{\"error\":\"expired\"}", "<Error>Request has expired</Error>"])
    func expiredLink(_ text: String) throws {
        let version = Self.version(3_000_000)
        let target = Resource(
            version,
            behaviour: Behaviour { context in
                guard context.request.target.hasSuffix("=1"), context.request.index > 0 else {
                    return context.request.index == 0 ? Self.broken(context) : context.correct
                }
                return Reply(200, text: text)
            })
        let latest = Resource(
            version,
            behaviour: Behaviour { context in
                Reply(302, [("Location", "/signed?number=\(context.request.index + 1)")], text: "")
            })
        let site = SimulatedSite(latest, more: ["/signed": target])
        let outcome = try site.download()
        #expect(outcome.succeeded, "\(outcome.message)")
        #expect(site.published([version]) != nil)
        #expect(site.server.requests.count { $0.request.url.description.hasSuffix(SimulatedSite.path) } == 2)
        #expect(outcome.notices.contains { $0.message.contains("the link no longer works") })
    }

    @Test("is no reason to fail if the file was there before", arguments: [201, 202, 204, 205, 207, 226])
    func successWithoutAFile(_ status: Int) throws {
        let version = Self.version(3_000_000)
        let site = Self.site(version)
        site.server.set(
            Behaviour { context in
                switch context.request.index {
                case 0: Self.broken(context)
                case 1...2: Reply([.head(ReplyHead(status, [("Content-Length", "0")]))])
                default: context.correct
                }
            }, for: SimulatedSite.path)
        let outcome = try site.download()
        #expect(outcome.succeeded && site.published([version]) != nil, "\(outcome.message)")
        #expect(site.server.requests.count == 4)
    }

    /// The server announces the requested part, and sends the beginning of the file.
    @Test func wrongPart() throws {
        let version = Self.version(6_000_000)
        let site = Self.site(version)
        site.server.set(
            Behaviour { context in
                guard let lower = context.request.field("Range")?.dropFirst(6).prefix(while: \.isNumber),
                    let start = Int64(lower), start > 0
                else { return context.request.index == 0 ? Self.broken(context) : context.correct }
                let count = context.correct.steps.reduce(Int64(0)) { sum, step in
                    if case .content(_, let range) = step { sum + Int64(range.count) } else { sum }
                }
                return context.correct.body([.content(version.content, 0..<count)])
            }, for: SimulatedSite.path)
        let outcome = try site.download { $0.connections = nil }
        #expect(outcome.succeeded, "\(outcome.message)")
        #expect(site.published([version]) != nil, "\(outcome.notices)")
        // After the restart, no part is requested.
        #expect(site.server.requests.last?.field("Range") == "bytes=0-")
        #expect(site.server.requests.count { $0.field("Range") == "bytes=0-" } == 2)
    }
}
