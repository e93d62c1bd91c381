import Testing

@testable import TowlineCore

/// Tests the table of docs/http-rules.md, "Believing a change".
@Suite("A response that would replace held bytes") struct HeldVersionTests {
    private static let archive = "application/zip"

    private func held(
        _ type: String? = archive, tag: String? = "\"1\"", length: Int64? = 3_000_000, count: Int64 = 2_500_000,
        coding: String? = nil
    ) -> HeldVersion {
        HeldVersion(
            Representation(
                completeLength: length, entityTag: tag.flatMap { EntityTag(fieldValue: $0) }, mediaType: type),
            coding: coding, count: count)
    }

    private func finished(_ kind: ContentKind?, length: Int64, tag: String? = "\"1\"") -> HeldVersion {
        let version = PublishedVersion(entityTag: tag.flatMap { EntityTag(fieldValue: $0) }, location: 0)
        var file = ExistingFile(length: length, modified: 0, version: version)
        file.kind = kind
        return HeldVersion(file)
    }

    private func offer(
        _ fields: [(String, String)] = [], length: Int64?, status: Int = 200, beginning: String = ""
    ) -> ResponseFacts {
        let size = length.map { [("Content-Length", String($0))] } ?? []
        var facts = ResponseFacts(
            ResponseHead(status: status, fields: HTTPFields(fields + size)), nameOfURL: "f.zip")
        facts.firstBytes = Array(beginning.utf8)
        return facts
    }

    private func type(_ name: String, _ more: (String, String)...) -> [(String, String)] {
        [("Content-Type", name)] + more
    }

    @Test(
        "that is text, and short, is not the file",
        arguments: [
            "text/plain", "text/html", "application/json", "application/problem+json", "application/xml", "text/xml",
            "image/svg+xml", "application/javascript", "application/x-yaml", "text/csv; charset=utf-8",
        ])
    func errors(_ name: String) {
        for tag in [[], [("ETag", "\"2\"")]] {
            let short = offer(type(name) + tag, length: 65_535)
            #expect(held().belief(in: short) == .refused)
            #expect(held(nil).belief(in: short) == .refused)
            #expect(held("application/octet-stream", count: 10).belief(in: short) == .refused)
            #expect(held().belief(in: offer(type(name) + tag, length: 65_536)) == .unconfirmed)
        }
        // Held bytes of the same kind and of at most 1 MiB may become shorter.
        let plain = String(name.prefix { $0 != ";" })
        let same = held(plain, count: 1 << 20).belief(in: offer(type(name, ("ETag", "\"2\"")), length: 100))
        #expect(same == .changed)
        let larger = held(plain, count: 1 << 20 + 1).belief(in: offer(type(name, ("ETag", "\"2\"")), length: 100))
        #expect(larger == .refused)
    }

    @Test("that is empty, or short and compressed, is not the file") func opaque() {
        #expect(held().belief(in: offer(length: 0)) == .refused)
        #expect(held().belief(in: offer(type(Self.archive, ("ETag", "\"2\"")), length: 0)) == .refused)
        #expect(held().belief(in: offer([("Content-Encoding", "gzip")], length: 500)) == .refused)
        #expect(held().belief(in: offer([("Content-Encoding", "gzip")], length: 500_000)) == .unconfirmed)
        #expect(held(coding: "gzip").belief(in: offer([("Content-Encoding", "gzip")], length: 500)) == .unconfirmed)
        let coded = offer(type(Self.archive, ("ETag", "\"2\""), ("Content-Encoding", "br")), length: 2_000_000)
        #expect(held().belief(in: coded) == .unconfirmed)
    }

    @Test(
        "that has no text type is examined by its first bytes", arguments: [nil, "application/octet-stream", archive])
    func unlabelled(_ name: String?) {
        let fields = name.map { type($0) } ?? []
        for text in ["too many requests\n", "{\"error\":1}", "<Error/>", "<!doctype html><p>"] {
            #expect(held().belief(in: offer(fields, length: 30, beginning: text)) == .refused)
        }
        #expect(held().belief(in: offer(fields, length: 30, beginning: "PK\u{3}\u{4}")) == .unconfirmed)
        // A new validator outweighs the first bytes only if the kind of the held bytes is unknown.
        let tagged = offer(fields + [("ETag", "\"2\"")], length: 30, beginning: "#!/bin/sh\n")
        #expect(held(count: 1 << 20).belief(in: tagged) == .refused)
        for mine in [nil, "application/octet-stream"] {
            #expect(held(mine, count: 1 << 20).belief(in: tagged) == .changed)
            #expect(held(mine, count: 1 << 20 + 1).belief(in: tagged) == .refused)
        }
    }

    @Test("that has a new validator and the same type is a change") func changed() {
        for name in [Self.archive, "application/octet-stream"] {
            let new = offer(type(name, ("ETag", "\"2\"")), length: 1_000_000)
            for mine in [Self.archive, "application/octet-stream", nil] where mine != Self.archive || name == mine {
                #expect(held(mine).belief(in: new) == .changed)
            }
        }
        #expect(held("video/mp4").belief(in: offer(type(Self.archive, ("ETag", "\"2\"")), length: 9)) == .unconfirmed)
        // A validator of another kind, or none, proves no change.
        let date = ("Last-Modified", "Sun, 06 Nov 1994 08:49:37 GMT")
        #expect(held().belief(in: offer(type(Self.archive, date), length: 1_000_000)) == .unconfirmed)
        #expect(held().belief(in: offer(type(Self.archive), length: 1_000_000)) == .unconfirmed)
        #expect(
            held(tag: nil).belief(in: offer(type(Self.archive, ("ETag", "\"2\"")), length: 1_000_000)) == .unconfirmed)
        // The same validator with another length is no proof.
        #expect(held().belief(in: offer(type(Self.archive, ("ETag", "\"1\"")), length: 1_000_000)) == .unconfirmed)
    }

    @Test("that contradicts nothing is no change") func same() {
        #expect(held().belief(in: offer(type(Self.archive, ("ETag", "\"1\"")), length: 3_000_000)) == .same)
        #expect(held(tag: nil).belief(in: offer(type(Self.archive), length: 3_000_000)) == .same)
        #expect(held(tag: nil).belief(in: offer(type(Self.archive), length: nil)) == .same)
        #expect(held(tag: nil).belief(in: offer(type(Self.archive), length: 2_000_000)) == .unconfirmed)
    }

    @Test("with status 416 only has to be confirmed") func unsatisfiable() {
        for fields in [[], type("text/html"), type("text/html", ("ETag", "\"2\""))] {
            for length: Int64 in [0, 20] {
                let answer = offer(fields + [("Content-Range", "bytes */0")], length: length, status: 416)
                #expect(held().belief(in: answer) == .unconfirmed)
            }
        }
    }

    /// The media type of a finished file is not stored.
    @Test("would replace a finished file whose first bytes show the kind") func finishedFile() {
        let error = offer(type("application/json"), length: 30)
        let tagged = offer(type("application/json", ("ETag", "\"2\"")), length: 30)
        #expect(finished(.binary, length: 20_000).belief(in: error) == .refused)
        #expect(finished(nil, length: 20_000).belief(in: tagged) == .refused)
        for kind in [ContentKind.text, .json, .xml] {
            #expect(finished(kind, length: 20_000).belief(in: tagged) == .changed)
            #expect(finished(kind, length: 20_000).belief(in: error) == .unconfirmed)
            #expect(finished(kind, length: 2_000_000).belief(in: tagged) == .refused)
            #expect(finished(kind, length: 20_000).belief(in: offer(type("text/html"), length: 30)) == .refused)
        }
    }

    /// `update` compares dates with files that other programs made.
    @Test("would replace a file of another program is a change if its date is new") func foreignFile() {
        var file = ExistingFile(length: 20_000, modified: 1_000_000, version: nil)
        file.kind = .binary
        let held = HeldVersion(file)
        let date = ("Last-Modified", "Sun, 06 Nov 1994 08:49:37 GMT")
        #expect(held.belief(in: offer(type(Self.archive, date), length: 30_000)) == .changed)
        #expect(held.belief(in: offer(type(Self.archive, date, ("ETag", "\"2\"")), length: 30_000)) == .changed)
        #expect(held.belief(in: offer(type(Self.archive, ("ETag", "\"2\"")), length: 30_000)) == .unconfirmed)
        #expect(held.belief(in: offer(type("text/plain", date), length: 30)) == .refused)
    }

    @Test("repeats a claim if type, validator and length agree") func repeated() {
        func claim(_ fields: [(String, String)], _ length: Int64?) -> ClaimedVersion {
            ClaimedVersion(representation: offer(fields, length: length).representation)
        }
        let fields = type(Self.archive, ("ETag", "\"2\""))
        func repeats(_ fields: [(String, String)], _ length: Int64?) -> Bool {
            claim(type(Self.archive, ("ETag", "\"2\"")), 100).isRepeated(
                by: offer(fields, length: length).representation)
        }
        #expect(repeats(fields, 100) && repeats(fields, 101))
        #expect(!repeats(fields, 99) && !repeats(fields, nil))
        #expect(!repeats(type("video/mp4", ("ETag", "\"2\"")), 100))
        #expect(!repeats(type(Self.archive, ("ETag", "\"3\"")), 100))
        #expect(!repeats(type(Self.archive), 100))
        #expect(claim(fields, nil).isRepeated(by: offer(fields, length: 5).representation))
    }
}
