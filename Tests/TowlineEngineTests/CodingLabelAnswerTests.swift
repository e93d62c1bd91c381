import Testing
import TowlineCore

@testable import TowlineEngine

/// The first bytes of a body decide about its Content-Encoding. The URL names `file.bin`, the server another file.
@Suite("An answer with a Content-Encoding")
struct CodingLabelAnswerTests {
    private static let gzip: [UInt8] = [0x1F, 0x8B, 0x08, 0x00, 0x61]

    /// The content coding of the answer, as reported to the transfer, after these pieces of the body; "waits" if it is
    /// not reported.
    private func coding(_ name: String, _ pieces: [[UInt8]], isWhole: Bool = false) throws -> String? {
        let bench = try WriterBench(ByteRange(0, .max), joinsDirectly: false, mayGather: true)
        let fields = [
            ("Content-Encoding", "gzip"), ("Content-Length", "500000"),
            ("Content-Disposition", "attachment; filename=\"\(name)\""),
        ]
        #expect(bench.writer.receivedHead(ResponseHead(status: 200, fields: HTTPFields(fields))) == .proceed)
        for piece in pieces {
            #expect(bench.reports.isEmpty, "reported before the bytes that decide")
            _ = bench.body(piece)
        }
        if isWhole { bench.writer.ended(.complete(.delimited)) }
        switch bench.reports.first {
        case .answered(_, let verdict)?, .answeredAndEnded(_, let verdict)?:
            return try #require(verdict.whole).contentCoding
        default: return "waits"
        }
    }

    @Test(
        "is the stored file if name and first bytes agree, however the bytes are split",
        arguments: [[gzip], [[0x1F], [0x8B]], [[], [0x1F], [0x8B, 0x08]]] as [[[UInt8]]])
    func label(_ pieces: [[UInt8]]) throws {
        #expect(try coding("src.tar.gz", pieces) == nil)
        #expect(try coding("SRC.TGZ", pieces) == nil)
    }

    @Test(
        "is compressed if they do not agree",
        arguments: [[Array("plain".utf8)], [[0x1F], [0x1F]], [[0x50, 0x4B, 0x03, 0x04]]] as [[[UInt8]]])
    func compressed(_ pieces: [[UInt8]]) throws {
        #expect(try coding("src.tar.gz", pieces) == "gzip")
    }

    @Test("is compressed if it ends before the first bytes decide")
    func short() throws {
        #expect(try coding("a.gz", [[0x1F]]) == "waits")
        #expect(try coding("a.gz", [[0x1F]], isWhole: true) == "gzip")
        #expect(try coding("a.zip", [Self.gzip]) == "gzip")
    }

    @Test("keeps all of its bytes")
    func bytes() throws {
        let bench = try WriterBench(ByteRange(0, .max), joinsDirectly: false)
        let fields = [("Content-Encoding", "x-gzip"), ("Content-Disposition", "attachment; filename=a.gz")]
        #expect(bench.writer.receivedHead(ResponseHead(status: 200, fields: HTTPFields(fields))) == .proceed)
        #expect(bench.body([0x1F]) == "consumed")
        #expect(bench.body([0x8B, 0x08]) == "pause")
        bench.writer.attach(sink: bench.sink, slot: nil, lease: ByteRange(0, .max))
        #expect(bench.body([0x8B, 0x08]) == "consumed")
        bench.writer.ended(.complete(.closed))
        #expect(bench.sink.bytes == [0x1F, 0x8B, 0x08] && bench.ending == "complete")
    }
}
