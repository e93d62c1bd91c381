import Testing
import TowlineCore
import TowlineEngine

@testable import TowlineCurl

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
