import Testing
import TowlineCore

@Suite("Transfer-Encoding and the end of a body")
struct TransferCodingTests {
    @Test(
        "One list of all lines, without case, white space and empty members",
        arguments: [
            ([], .absent), (["chunked"], .chunked), (["Chunked"], .chunked), (["chunked, chunked"], .chunked),
            (["chunked", "chunked"], .chunked), (["gzip, chunked"], .chunked), (["gzip", "\tchunked"], .chunked),
            (["x-gzip,deflate , chunked"], .chunked), (["identity, chunked"], .chunked), ([", chunked,"], .chunked),
            (["gzip"], .untilClose), (["identity"], .identity), ([""], .identity), (["chunked, gzip"], .unsupported),
            (["chunked", "identity", "br"], .unsupported), (["xchunked"], .unsupported),
            (["compress, chunked"], .unsupported), (["chunked;q=1"], .unsupported), (["chunked chunked"], .unsupported),
        ] as [([String], TransferCoding)])
    func lists(_ lines: [String], _ expected: TransferCoding) {
        #expect(TransferCoding(HTTPFields(lines.map { ("Transfer-Encoding", $0) })) == expected)
    }

    @Test("A transfer coding overrides Content-Length, and identity does not")
    func overrides() {
        for (coding, length) in [("chunked", nil), ("gzip, chunked", nil), ("identity", 5 as Int64?)] {
            let fields = HTTPFields([("Content-Length", "5"), ("Transfer-Encoding", coding)])
            let facts = ResponseFacts(ResponseHead(status: 200, fields: fields), nameOfURL: "a")
            #expect(facts.representation.completeLength == length)
            #expect(facts.isChunked == (length == nil))
        }
    }
}
