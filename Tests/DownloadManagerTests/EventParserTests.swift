import Synchronization
import Testing

@testable import TowlineClient

/// The parser of towd's event stream.
@Suite struct EventParserTests {
    /// The bytes of a stream arrive in pieces of any length.
    @Test func everyDivisionOfTheStreamHasTheSameEvents() {
        let stream = Array(
            ": towline\n\nevent: changed\nid: x-1\ndata: {\"a\":\"b: c\"}\n\n:\n\nevent: reset\nid: x-2\ndata: {}\n\n"
                .utf8)
        let expected = [
            ServiceEvent(name: "open", data: []),
            ServiceEvent(name: "changed", data: Array(#"{"a":"b: c"}"#.utf8)),
            ServiceEvent(name: "reset", data: Array("{}".utf8)),
        ]
        for length in 1...stream.count {
            let events = Mutex<[ServiceEvent]>([])
            let parser = EventParser { event in events.withLock { $0.append(event) } }
            for start in stride(from: 0, to: stream.count, by: length) {
                stream[start..<min(start + length, stream.count)].withUnsafeBytes { #expect(parser.take($0)) }
            }
            #expect(events.withLock { $0 } == expected, "pieces of \(length) bytes")
        }
    }

    @Test func anEndlessLineEndsTheStream() {
        let parser = EventParser { _ in }
        let piece = [UInt8](repeating: 0x61, count: 1 << 20)
        let accepted = (0..<20).prefix { _ in piece.withUnsafeBytes { parser.take($0) } }.count
        #expect(accepted == 16)
    }
}
