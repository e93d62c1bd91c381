import NIOCore
import Testing

@testable import TowlineService

/// The limits on memory and connections that clients share.
@Suite struct BudgetTests {
    @Test func aBudgetIsNeverExceeded() {
        let budget = BodyBudget(limit: 10)
        #expect(budget.take(6) && !budget.take(5) && budget.take(4) && !budget.take(1))
        budget.giveBack(6)
        #expect(budget.take(6) && !budget.take(1))
    }

    @Test(arguments: [
        ("10.0.0.1", "10.0.0.1"), ("::ffff:10.0.0.1", "10.0.0.1"), ("127.0.0.9", "loopback"), ("::1", "loopback"),
        ("2a00:1:2:3::1", "42:0:0:1:0:2:0:3"),
        ("2a00:1:2:3:ffff::9", "42:0:0:1:0:2:0:3"), ("2a00:1:2:4::1", "42:0:0:1:0:2:0:4"),
    ])
    func aClientIsAnIPv4AddressOrAnIPv6Network(_ address: String, _ client: String) throws {
        #expect(ConnectionShare.client(try SocketAddress(ipAddress: address, port: 1)) == client)
    }

    @Test func theUnixSocketIsNotCounted() throws {
        #expect(ConnectionShare.client(try SocketAddress(unixDomainSocketPath: "/tmp/s")) == nil)
        #expect(ConnectionShare.client(nil) == nil)
    }
}
