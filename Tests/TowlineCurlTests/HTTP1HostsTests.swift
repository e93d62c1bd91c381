import Testing
import TowlineCore
import TowlineEngine

@testable import TowlineCurl

@Suite("Hosts without HTTP/2") struct HTTP1HostsTests {
    private let origin: HTTPURL.Origin
    private let other: HTTPURL.Origin

    init() throws {
        origin = try HTTPURL(parsing: "https://a.test/").origin
        other = try HTTPURL(parsing: "https://b.test/").origin
    }

    private func usesHTTP1(_ hosts: HTTP1Hosts, _ origin: HTTPURL.Origin) -> Bool {
        ConnectionOptions().withProtocol(for: origin, besides: hosts).httpProtocol == .http1
    }

    @Test("A host is added once, and no other host with it")
    func add() {
        let hosts = HTTP1Hosts()
        #expect(!usesHTTP1(hosts, origin))
        #expect(hosts.add(origin))
        #expect(!hosts.add(origin))
        #expect(usesHTTP1(hosts, origin) && !usesHTTP1(hosts, other))
        var options = ConnectionOptions()
        options.httpProtocol = .http2PriorKnowledge
        #expect(options.withProtocol(for: origin, besides: hosts).httpProtocol == .http2PriorKnowledge)
    }

    @Test(
        "A host that does not speak HTTP/1.1 is asked over HTTP/2 again",
        arguments: [
            (TransportFailure.Kind.tlsFailed, true), (.malformed, true), (.closedBeforeHead, true),
            (.connectFailed, false), (.hostNotFound, false), (.headTimedOut, false),
        ])
    func refused(_ kind: TransportFailure.Kind, _ isRefused: Bool) {
        let hosts = HTTP1Hosts()
        hosts.note(origin, hasResponded: false, failure: kind)
        #expect(hosts.add(origin))
        hosts.note(origin, hasResponded: false, failure: kind)
        #expect(usesHTTP1(hosts, origin) != isRefused)
        #expect(!hosts.add(origin))
    }

    @Test("After a response over HTTP/1.1 a failure changes nothing")
    func works() {
        let hosts = HTTP1Hosts()
        #expect(hosts.add(origin))
        hosts.note(origin, hasResponded: true, failure: nil)
        hosts.note(origin, hasResponded: false, failure: .closedBeforeHead)
        #expect(usesHTTP1(hosts, origin))
    }
}
