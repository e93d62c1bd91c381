import Testing
import TowlineCore

@Suite("Proxy addresses") struct ProxyAddressTests {
    @Test(
        "every form that libcurl accepts is accepted",
        arguments: [
            ("http://proxy:3128", "proxy:3128"), ("proxy:3128", "proxy:3128"), ("127.0.0.1", "127.0.0.1"),
            ("HTTPS://u:p@proxy.test:443/", "proxy.test:443"), ("u:p@proxy", "proxy"), ("http://u@proxy:", "proxy:"),
            ("socks5h://u:a:b%40c%zz@[::1]:1080", "[::1]:1080"), ("socks4a://proxy", "proxy"),
            ("http://[fe80::1%25eth0]:1", "[fe80::1%25eth0]:1"), ("http://ü:ä@müller.test", "müller.test"),
        ])
    func valid(_ text: String, _ place: String) throws {
        #expect(try ProxyAddress(parsing: text).place == place)
    }

    @Test(
        "all other text is refused, and no message shows any of it",
        arguments: [
            "", "http://", "http://u:canary@", "http://u:canary@:3128", "http://u:canary@proxy:http",
            "http://u:canary@proxy:65536", "http://u:canary@proxy:0", "http://u:canary@proxy:1:2",
            "http://u:canary@[::1:3128", "http://u:canary@[::1]3128", "http://u:canary@[:::]:1",
            "http://u:canary@pro%78y:1", "http://u:canary@pro xy:1", "http://u:canary@proxy:1\n",
            "ftp://u:canary@proxy", "canary://proxy", "://canary@proxy", "http://u:c@canary@proxy:1",
            "http://u:c#canary@proxy:1", "http://u:c/canary@proxy:1", "http://u:c?canary@proxy:1", "u:c@canary@proxy",
            "http://u:canary", "http://u:c://canary@proxy:1",
        ])
    func invalid(_ text: String) {
        do throws(TowlineError) {
            _ = try ProxyAddress(parsing: text)
            Issue.record("\(text) was accepted")
        } catch {
            #expect(error.code == .unusableOption)
            #expect(!error.message.contains("canary"), "\(error.message)")
        }
    }
}
