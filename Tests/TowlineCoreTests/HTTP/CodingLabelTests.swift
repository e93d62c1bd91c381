import Testing
import TowlineCore

@Suite("A Content-Encoding that labels the stored file")
struct CodingLabelTests {
    private static let gzip: [UInt8] = [0x1F, 0x8B, 0x08]

    private func question(_ url: String, fileName: String? = nil) throws -> ResponseQuestion {
        var question = ResponseQuestion(
            asked: .from(0), rung: .nothingToJoin, known: nil, source: try HTTPURL(parsing: url))
        question.fileName = fileName
        return question
    }

    /// Returns `true` if a first answer with these first bytes is the stored file; `nil` if more bytes are needed.
    private func isStored(
        _ url: String, _ coding: String, _ bytes: [UInt8], fileName: String? = nil, named: String? = nil
    ) throws -> Bool? {
        let question = try self.question(url, fileName: fileName)
        var fields = [("Content-Encoding", coding), ("Content-Length", "1000")]
        if let named { fields.append(("Content-Disposition", "attachment; filename=\"\(named)\"")) }
        let verdict = ResponseEvaluator.verdict(
            on: ResponseHead(status: 200, fields: HTTPFields(fields)), to: question)
        let signatures = CodingLabel.signatures(for: verdict, from: question.source, question)
        return signatures.isEmpty ? false : CodingLabel.agrees(bytes, with: signatures)
    }

    @Test(
        "is ignored where name and first bytes agree",
        arguments: [
            ("/src.tar.gz", "gzip", gzip), ("/SRC.TGZ?sig=1", "x-gzip", gzip), ("/a.zip", "gzip", [0x50, 0x4B, 3, 4]),
            ("/a.tar.bz2", "bzip2", Array("BZh9".utf8)), ("/a.xz", "gzip", [0xFD, 0x37, 0x7A, 0x58, 0x5A, 0, 1]),
            ("/app.wasm.br", "br", [1]), ("/a.pdf", "deflate", Array("%PDF-1.7".utf8)),
        ] as [(String, String, [UInt8])])
    func agrees(_ path: String, _ coding: String, _ bytes: [UInt8]) throws {
        #expect(try isStored("https://example.org" + path, coding, bytes) == true)
    }

    @Test(
        "counts where they do not",
        arguments: [
            ("/src.tar.gz", "gzip", Array("plain".utf8)), ("/a.zip", "gzip", gzip), ("/a.json", "gzip", gzip),
            ("/gz", "gzip", gzip), ("/a.br", "gzip", gzip), ("/", "gzip", gzip),
        ] as [(String, String, [UInt8])])
    func differs(_ path: String, _ coding: String, _ bytes: [UInt8]) throws {
        #expect(try isStored("https://example.org" + path, coding, bytes) == false)
    }

    @Test("is decided by the name of the user, the server, or the URL")
    func names() throws {
        let url = "https://example.org/download?id=5"
        #expect(try isStored(url, "gzip", Self.gzip) == false)
        #expect(try isStored(url, "gzip", Self.gzip, fileName: "a.gz") == true)
        #expect(try isStored(url, "gzip", Self.gzip, named: "a.tgz") == true)
        #expect(try isStored(url + "/a.gz", "gzip", Self.gzip, named: "data") == false)
    }

    @Test("needs as many bytes as the signature has")
    func fewBytes() throws {
        for count in 0..<6 {
            let bytes = Array([0xFD, 0x37, 0x7A, 0x58, 0x5A, 0x00].prefix(count)) as [UInt8]
            #expect(try isStored("https://example.org/a.xz", "xz", bytes) == nil)
        }
    }

    @Test("does not keep a part from being joined, if the first answer had the same label")
    func parts() throws {
        let known = Representation(completeLength: 1000, entityTag: EntityTag(fieldValue: "\"a\""))
        var question = try self.question("https://example.org/a.gz")
        (question.asked, question.rung, question.known) = (.range(ByteRange(100, 200)), .ifRange, known)
        func isJoined(_ label: CodingLabel, _ coding: String, _ more: [(String, String)]) -> Bool {
            question.label = label
            let fields = [("Content-Range", "bytes 100-199/1000"), ("ETag", "\"a\""), ("Content-Encoding", coding)]
            let head = ResponseHead(status: 206, fields: HTTPFields(fields + more))
            if case .partial(_, let facts) = ResponseEvaluator.verdict(on: head, to: question) {
                return facts.contentCoding == nil
            }
            return false
        }
        let length = [("Content-Length", "100")]
        #expect(isJoined(.coding("gzip"), "gzip", length))
        #expect(isJoined(.coding("gzip"), "X-Gzip", length))
        #expect(isJoined(.unknown, "gzip", length))
        #expect(!isJoined(.coding("gzip"), "br", length))
        #expect(!isJoined(.none, "gzip", length))
        // A part that was compressed on the way has another length, or no length.
        #expect(!isJoined(.coding("gzip"), "gzip", []))
        #expect(!isJoined(.coding("gzip"), "gzip", [("Content-Length", "99")]))
        #expect(!isJoined(.unknown, "gzip", [("Transfer-Encoding", "chunked")]))
    }

    @Test("An unknown coding is ignored", arguments: ["utf-8", "none", "binary", "aws-chunked", "8bit"])
    func unknownCodings(_ coding: String) throws {
        let head = ResponseHead(status: 200, fields: HTTPFields([("Content-Encoding", coding)]))
        let verdict = ResponseEvaluator.verdict(on: head, to: try question("https://example.org/a.bin"))
        #expect(verdict.whole?.contentCoding == nil && verdict.whole?.label == coding)
    }
}
