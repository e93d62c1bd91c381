import FaultServer
import Testing
import TowlineCore
import TowlineEngine

/// Further connections that a server refuses. The first response delivers the whole file.
@Suite(.serialized, .timeLimit(.minutes(1)))
struct FurtherConnectionTests {
    @Test(arguments: [
        Fault.status(410), .status(404), .status(500), .retryAfter("3600", status: 503), .retryAfter("3600"),
        .garbageStatusLine, .connectionLimitByReset(0),
    ])
    func linkForOneRequest(_ fault: Fault) async throws {
        let resource = Resource(length: 3_000_000, rate: 2_000_000, behaviour: .after(1, fault))
        try await Site.with(try await Site(resource)) { site in
            let outcome = try await site.download { $0.connections = 4 }
            try site.expectFile(outcome)
            #expect(site.requests.count <= 8, "\(site.requests.count) requests")
        }
    }

    /// Some further connections work, and the rest of the file is refused to all others.
    @Test(arguments: [2, 3, 6])
    func linkForFewRequests(_ count: Int) async throws {
        let resource = Resource(length: 3_000_000, rate: 2_000_000, behaviour: .after(count, .status(403)))
        try await Site.with(try await Site(resource)) { site in
            try site.expectFile(try await site.download { $0.connections = 4 })
        }
    }

    /// A 503 for one connection too many affects no other download: `Retry-After` is not applied to the whole host.
    @Test func retryAfterOfAFurtherConnection() async throws {
        let resource = Resource(
            length: 3_000_000, rate: 2_000_000, behaviour: .after(1, .retryAfter("3600", status: 503)))
        try await Site.with(try await Site(resource)) { site in
            try site.expectFile(try await site.download { $0.connections = 2 })
            #expect(site.requests.count == 2)
        }
    }
}
