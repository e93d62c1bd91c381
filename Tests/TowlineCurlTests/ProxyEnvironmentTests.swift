import Testing
import TowlineCore
import TowlineEngine

@testable import TowlineCurl

@Suite("Proxies of the environment") struct ProxyEnvironmentTests {
    private func variable(_ variables: [String: String], _ url: String) throws -> String? {
        try ProxyEnvironment { variables[$0] }.proxy(for: HTTPURL(parsing: url))?.variable
    }

    @Test("The variable depends on the scheme, as in libcurl")
    func variables() throws {
        let all = ["http_proxy": "a", "https_proxy": "b", "HTTPS_PROXY": "c", "all_proxy": "d", "ALL_PROXY": "e"]
        #expect(try variable(all, "http://x.test/") == "http_proxy")
        #expect(try variable(all, "https://x.test/") == "https_proxy")
        #expect(try variable(["HTTPS_PROXY": "c", "all_proxy": "d"], "https://x.test/") == "HTTPS_PROXY")
        // A CGI program finds a header of the client under that name.
        #expect(try variable(["HTTP_PROXY": "a"], "http://x.test/") == nil)
        #expect(try variable(["http_proxy": "", "ALL_PROXY": "e"], "http://x.test/") == "ALL_PROXY")
        #expect(try variable([:], "http://x.test/") == nil)
    }

    @Test(
        "no_proxy names hosts, domains, addresses and networks",
        arguments: [
            ("*", "a.test", true), ("*.test", "a.test", false), ("a.test", "a.test", true), ("TEST", "a.test", true),
            (".test", "a.test", true), ("a.test.", "a.test", true), ("a.test", "a.test.", true),
            ("est", "a.test", false), ("b.test, a.test", "a.test", true), ("b.test a.test", "a.test", true),
            ("127.0.0.1", "127.0.0.1", true), ("127.0.0.0/8", "127.1.2.3", true), ("10.0.0.0/8", "127.1.2.3", false),
            ("192.168.4.0/23", "192.168.5.9", true), ("192.168.4.0/23", "192.168.6.9", false),
            ("0.0.1", "127.0.0.1", false), ("::1", "[::1]", true), ("[::1]", "[::1]", true),
            ("fd00::/8", "[fd12::1]", true), ("fd00::/8", "[fe80::1]", false), ("1.2.3.4/99", "1.2.3.4", false),
            (",, ,", "a.test", false), ("", "a.test", false),
        ])
    func exceptions(_ list: String, _ host: String, _ isExempt: Bool) throws {
        let found = try variable(["http_proxy": "p", "no_proxy": list], "http://\(host)/")
        #expect((found == nil) == isExempt)
    }

    @Test("A proxy that the user names, or refuses, outranks the environment")
    func precedence() throws {
        let environment = ProxyEnvironment { ["http_proxy": "http://u:canary@:1"][$0] }
        let url = try HTTPURL(parsing: "http://x.test/")
        func proxy(_ change: (inout ConnectionOptions) -> Void) -> String? {
            var options = ConnectionOptions()
            change(&options)
            return options.withProxy(for: url, from: environment).proxy
        }
        #expect(proxy { _ in } == "http://u:canary@:1")
        #expect(proxy { $0.proxy = "p" } == "p")
        #expect(proxy { $0.proxy = "" }?.isEmpty == true)
        #expect(proxy { $0.publicAddressesOnly = true } == nil)
        let options = ConnectionOptions().withProxy(for: url, from: environment)
        do throws(TransportFailure) {
            _ = try options.checkedProxy()
            Issue.record("the address was accepted")
        } catch {
            #expect(error.kind == .proxyUnusable)
            #expect(error.message.contains("http_proxy") && !error.message.contains("canary"), "\(error.message)")
        }
    }
}
