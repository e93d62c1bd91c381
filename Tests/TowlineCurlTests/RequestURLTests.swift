import CCurl
import Testing
import TowlineCore
import TowlineEngine

@testable import TowlineCurl

/// URLs of one origin are parsed here instead of by libcurl. The result must be the same.
@Suite struct RequestURLTests {
    private static let texts = [
        "http://a.example/", "http://a.example/b", "http://a.example/b/c.d?e=f&g=?/h", "http://a.example/b/../c/./d",
        "http://a.example/B~!$&'()*+,;=:@", "http://a.example//b//", "http://b.example:8080/b", "https://a.example/b",
        "http://[::1]:81/b?c", "http://a.example/?x", "http://127.0.0.1:1/9",
        "http://a.example/\(String(repeating: "x", count: 4000))",
        "http://a.example/%2F%2f%C3%A9", "http://a.example/b?c=%2F", "http://a.example/b?",
    ]

    /// The parts of the URL as libcurl parses its text; "-" for a missing part.
    private static func text(_ parts: OpaquePointer?) -> [String] {
        [
            CURLUPART_SCHEME, CURLUPART_HOST, CURLUPART_PORT, CURLUPART_PATH, CURLUPART_QUERY, CURLUPART_URL,
            CURLUPART_USER,
        ]
        .map { part in
            var text: UnsafeMutablePointer<CChar>?
            guard curl_url_get(parts, part, &text, UInt32(CURLU_DEFAULT_PORT)) == CURLUE_OK, let text else {
                return "-"
            }
            defer { curl_free(text) }
            return String(cString: text)
        }
    }

    @Test func partsAreThoseOfTheText() throws {
        let url = RequestURL()
        var random = SystemRandomNumberGenerator()
        var (left, taken) = (0, 0)
        for _ in 0..<2000 {
            let target = try HTTPURL(parsing: try #require(Self.texts.randomElement(using: &random)))
            guard let parts = url.parts(of: target) else {
                left += 1
                #expect(target.requestText.contains("%") || target.query == "", "\(target)")
                continue
            }
            taken += 1
            let whole = curl_url()
            defer { curl_url_cleanup(whole) }
            try #require(curl_url_set(whole, CURLUPART_URL, target.requestText, UInt32(CURLU_PATH_AS_IS)) == CURLUE_OK)
            #expect(Self.text(parts) == Self.text(whole), "\(target)")
        }
        #expect(left > 100 && taken > 1000)
    }
}

extension CurlTransportTests {
    @Suite struct RequestTargetTests {
        /// Sends the requests over one transport, so that they use the same handles in sequence.
        @Test func eachGoesOutAsItIs() async throws {
            let server = ScriptedServer(responses: { _ in response("x") })
            let other = ScriptedServer(responses: { _ in response("y") })
            defer {
                server.close()
                other.close()
            }
            let targets = [
                "/a", "/a?b=c", "/a", "/%2F%2f", "/a?b=%C3%A9", "/b?", "/b", "/c?d", "/e/f//g;h=1?i=j?k", "/%7Euser",
                "/~user", "/",
            ]
            let transport = CurlTransport()
            for (index, target) in targets.enumerated() {
                let place = index % 4 == 3 ? other : server
                let receiver = RecordingReceiver()
                transport.start(.make(place.url(target)), receiver: receiver)
                #expect(await receiver.finished().body.count == 1)
                #expect(
                    place.requestHeads.last?.hasPrefix("GET \(target) HTTP/1.1\r\nHost: 127.0.0.1:\(place.port)\r\n")
                        == true)
            }
            await transport.shutdown()
            #expect(server.requestHeads.count + other.requestHeads.count == targets.count)
        }
    }
}
