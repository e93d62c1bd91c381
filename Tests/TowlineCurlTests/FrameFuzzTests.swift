import Fuzzing
import Testing
import TowlineCore
import TowlineCurl
import TowlineEngine

extension CurlTransportTests {
    /// A server that sends random and mutated HTTP/2 frames. libcurl and nghttp2 parse frames, so the transport is
    /// tested as a whole. `TOWLINE_TORTURE=1` runs the long form; `TOWLINE_FUZZ_SEED` with the seed of a failure
    /// repeats it.
    ///
    /// Fails if an attempt crashes the process or does not end, if bytes reach the receiver that no DATA frame of the
    /// stream contained, if a body of another length than its head says is complete, and if a valid response is not. To
    /// see it fail, take the stream number or the padding out of `FrameSequence.read`.
    @Suite("Fuzz: HTTP/2 frames") struct FrameFuzzTests {
        @Test("Each attempt ends in time, with an error or with the right body")
        func frames() async {
            let runs = FuzzSettings.isLong ? 5000 : 200
            let transport = CurlTransport()
            var (complete, failed) = (0, 0)
            for run in 0..<runs {
                let seed = FuzzSettings.seed &+ run
                var generator = Generator(seed: UInt64(truncatingIfNeeded: seed))
                let sequence = FrameSequence(&generator)
                let record = await Self.fetch(sequence, on: transport)
                if let problem = sequence.violation(record) {
                    Issue.record("HTTP/2 frames, seed \(seed): \(problem): \(sequence.first) \(sequence.rest)")
                    break
                }
                if record.end?.framing == nil { failed += 1 } else { complete += 1 }
            }
            await transport.shutdown()
            print("fuzz: HTTP/2 frames: \(complete) complete, \(failed) failed")
            // Sequences that all fail, or all succeed, would test only one of the two.
            #expect(complete > runs / 20 && failed > runs / 20)
        }

        private static func fetch(_ sequence: FrameSequence, on transport: CurlTransport) async
            -> RecordingReceiver.Record
        {
            let server = ScriptedServer { connection, _ in
                connection.readHTTP2Request(sending: sequence.first)
                connection.send(sequence.rest)
                connection.finishSending()
                connection.waitForPeer()
            }
            defer { server.close() }
            let options = ConnectionOptions.with {
                $0.httpProtocol = .http2PriorKnowledge
                $0.connectTimeout = .seconds(5)
                $0.headTimeout = .seconds(5)
            }
            let request = AttemptRequest.make(server.url(), connection: options)
            let watchdog = Task {
                try await Task.sleep(for: .seconds(15))
                // The attempt ends as cancelled, which is a violation.
                transport.cancel(request.id)
            }
            defer { watchdog.cancel() }
            let receiver = RecordingReceiver()
            transport.start(request, receiver: receiver)
            return await receiver.finished()
        }
    }
}

/// The frames of a server for the request on stream 1 (RFC 9113 §4.1), and their meaning according to an independent
/// parser.
private struct FrameSequence: Sendable {
    /// The frames sent at once: mostly a valid SETTINGS frame.
    private(set) var first: [UInt8]
    /// The frames sent after the request.
    private(set) var rest: [UInt8] = []
    /// `true` for a response without an error and without a mutation.
    private var isValid = false

    private static let okHead: [UInt8] = [0x88]
    private static let headBlocks: [[UInt8]] = [
        okHead, okHead, okHead,
        // `content-length: 8`, twice; 204; 304; 206; 103.
        [0x88, 0x0F, 0x0D, 0x01, 0x38], [0x88, 0x0F, 0x0D, 0x01, 0x38, 0x0F, 0x0D, 0x01, 0x38], [0x89], [0x8B], [0x8A],
        [0x08, 0x03, 0x31, 0x30, 0x33],
        // No status, two of them, one that is no number, an index that does not exist, a table that is too large.
        [], [0x88, 0x88], [0x08, 0x03, 0x78, 0x78, 0x78], [0xFF, 0xFF, 0xFF, 0xFF, 0x0F],
        [0x3F, 0xE1, 0xFF, 0x7F, 0x88],
    ]

    init(_ generator: inout Generator) {
        first = Self.frame(4, stream: 0)
        isValid = generator.below(4) == 0
        if isValid {
            rest = Self.frame(1, flags: 4, stream: 1, Self.okHead)
            for _ in 0..<generator.below(4) { rest += Self.data(&generator, flags: 0) }
            rest += Self.data(&generator, flags: 1)
        } else {
            if generator.below(8) > 0 { rest += Self.frame(1, flags: 4, stream: 1, generator.one(of: Self.headBlocks)) }
            for _ in 0..<generator.below(8) { rest += Self.anyFrame(&generator) }
            if generator.below(2) == 0 { rest += Self.data(&generator, flags: 1) }
        }
        guard generator.below(2) == 0 else { return }
        isValid = false
        for _ in 0...generator.below(3) where !rest.isEmpty {
            rest[generator.below(rest.count)] ^= 1 << UInt8(generator.below(8))
        }
        if generator.below(4) == 0 { rest.removeLast(generator.below(rest.count + 1)) }
        if generator.below(8) == 0 { first = generator.bytes(upTo: 40) }
    }

    private static func frame(_ kind: UInt8, flags: UInt8 = 0, stream: UInt32, _ payload: [UInt8] = []) -> [UInt8] {
        [UInt8(truncatingIfNeeded: payload.count >> 16), UInt8(truncatingIfNeeded: payload.count >> 8)]
            + [UInt8(truncatingIfNeeded: payload.count), kind, flags] + number(stream) + payload
    }

    private static func number(_ value: UInt32) -> [UInt8] {
        [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: value >> $0) }
    }

    private static func data(_ generator: inout Generator, flags: UInt8) -> [UInt8] {
        frame(0, flags: flags, stream: 1, generator.bytes(upTo: 2000))
    }

    /// Returns a frame of any kind on any stream, with numbers at the edge.
    private static func anyFrame(_ generator: inout Generator) -> [UInt8] {
        let stream: UInt32 = generator.one(of: [0, 1, 1, 1, 2, 3, 0x7FFF_FFFF, 0x8000_0001])
        let edges: [UInt32] = [0, 1, 2, 7, 8, 0x3FFF, 0x4000, 0xFFFF, 0x7FFF_FFFF, 0xFFFF_FFFF]
        let flags: UInt8 = generator.one(of: [0, 0, 1, 4, 5, 8, 0x20, 0xFF])
        switch generator.below(12) {
        case 0, 1: return data(&generator, flags: 0)
        case 2:
            // Padded: the first byte is the length of the padding.
            let body = generator.bytes(upTo: 100)
            let padding = UInt8(truncatingIfNeeded: generator.below(120))
            return frame(0, flags: 8, stream: 1, [padding] + body + [UInt8](repeating: 0, count: 50))
        case 3: return frame(1, flags: flags, stream: stream, generator.one(of: headBlocks))
        case 4: return frame(3, stream: 1, number(generator.one(of: edges)))
        case 5:
            let setting: [UInt8] = [0, UInt8(generator.below(10))] + number(generator.one(of: edges))
            return frame(4, flags: generator.one(of: [0, 0, 1]), stream: 0, setting)
        case 6: return frame(6, flags: generator.one(of: [0, 1]), stream: 0, [UInt8](repeating: 7, count: 8))
        case 7:
            return frame(
                7, stream: 0, number(generator.one(of: [0, 1, 0x7FFF_FFFF])) + number(generator.one(of: edges)))
        case 8: return frame(8, stream: stream, number(generator.one(of: edges)))
        case 9: return frame(9, flags: flags, stream: stream, generator.one(of: headBlocks))
        case 10: return frame(5, flags: flags, stream: 1, number(2) + okHead)
        default: return frame(UInt8(generator.below(256)), flags: flags, stream: stream, generator.bytes(upTo: 40))
        }
    }

    /// Returns the bytes that stream 1 carries up to its end.
    private func read() -> [UInt8] {
        var (body, hasEnd): ([UInt8], Bool) = ([], false)
        var bytes = (first + rest)[...]
        while bytes.count >= 9, !hasEnd {
            let head = Array(bytes.prefix(9))
            let length = Int(head[0]) << 16 | Int(head[1]) << 8 | Int(head[2])
            var payload = bytes.dropFirst(9).prefix(length)
            bytes = bytes.dropFirst(9 + length)
            guard head[5] & 0x7F == 0, head[6] == 0, head[7] == 0, head[8] == 1, head[3] <= 1 else { continue }
            if head[3] == 0, head[4] & 8 != 0, let padding = payload.popFirst() {
                payload = payload.prefix(max(0, length - 1 - Int(padding)))
            }
            if head[3] == 0 { body += payload }
            hasEnd = head[4] & 1 != 0
        }
        return body
    }

    /// Returns the violated property, or `nil`.
    func violation(_ record: RecordingReceiver.Record) -> String? {
        if let problem = record.violations.first { return problem }
        let body = read()
        if !body.starts(with: record.body) { return "\(record.body.count) bytes are not a prefix of the body" }
        guard let end = record.end else { return "no end" }
        if end.isCancelled || end.isStopped { return "the attempt did not end in time" }
        guard let framing = end.framing else { return isValid ? "a valid response failed: \(describe(end))" : nil }
        guard record.heads.count == 1, let head = record.heads.first else { return "complete without a head" }
        let hasNoBody = head.status == 204 || head.status == 304
        switch framing {
        case .delimited where hasNoBody: return record.body.isEmpty ? nil : "a body with status \(head.status)"
        case .delimited:
            let length = head.fields.value(named: "Content-Length").flatMap { Int($0) }
            return length == record.body.count ? nil : "\(record.body.count) bytes, of length \(length ?? -1)"
        case .stream:
            // The length is not verifiable: libcurl 7.88 takes a reset without an error for an end, and also a
            // connection that it ended itself because of an invalid frame, such as a PUSH_PROMISE that was disabled.
            return isValid && record.body != body ? "\(record.body.count) of \(body.count) bytes" : nil
        case .closed, .unclosed: return "the framing of HTTP/1.0"
        }
    }
}
