import Glibc
import Testing
import TowlineCore
import TowlineEngine

@testable import TowlineDisk

/// The digests of URLs that journals and finished files store.
@Suite struct LinkDigestTests {
    let directory = ScratchDirectory()
    let storage = FileStorage(boot: BootIdentity(high: 1, low: 1))

    private static let base = "http://example.test/file"
    private static let links = [
        "?key=a", "?key=b", "?id=a", "?hdnea=1", "?hdnea=2", "?hdnea=1&key=a", "?hdnea=2&key=a", "",
    ]

    private func link(_ query: String) throws -> LinkIdentity { try .of(Self.base + query) }

    @Test func aDigestIsSaltedAndContainsNoSecret() throws {
        let link = try link("?key=CANARY")
        let (first, second) = (try #require(LinkDigest(of: link)), try #require(LinkDigest(of: link)))
        #expect(first != second && first.match(link) == .exact && second.match(link) == .exact)
        #expect(LinkDigest(stored: first.bytes) == first)
        #expect(LinkDigest(stored: first.bytes.dropLast()) == nil)
        #expect(try LinkDigest(of: self.link("?id=1")) == nil)
    }

    private func make(_ link: LinkIdentity, stores: Bool = true) throws -> OpenPart {
        var record = DownloadRecord.sample(length: 5000)
        record.source = link.text
        var terms = CreateTerms(journaled: true)
        terms.link = stores ? link : nil
        return try storage.create(directory.place(), record: record, terms: terms)
    }

    /// A journal and a finished file compare every URL as if they knew their own URL completely.
    @Test(arguments: links) func aFileKnowsItsURL(_ query: String) async throws {
        let own = try link(query)
        let part = try make(own)
        try part.fill(0..<5000)
        // A change of the metadata keeps the digest.
        var record = try #require(part.journal?.record)
        record.lacksRanges = true
        try part.journal?.update(record)
        part.sink.close()
        let again = try #require(try storage.unfinished(directory.place()))
        for other in try Self.links.map(link) {
            #expect(again.source?.relation(to: other) == other.relation(to: own), "\(other.exact)")
            let found = storage.find(other, inDirectory: directory.path)
            #expect((found != nil) == (other.relation(to: own) != .different), "\(other.exact)")
        }
        let version = PublishedVersion(entityTag: EntityTag(fieldValue: "\"tag\""), location: 1)
        _ = try await again.sink.publish(
            PublishTerms(
                existing: .fail, durable: true, length: 5000, modified: 1_600_000_000, link: own, version: version))
        guard case .finished(let file, let source) = try storage.survey(directory.place()) else {
            Issue.record("not finished")
            return
        }
        #expect(file.version?.entityTag == version.entityTag)
        for other in try Self.links.map(link) {
            #expect(source.relation(to: other) == other.relation(to: own), "\(other.exact)")
        }
        #expect(directory["file"]?.count == 5000 && directory.names == ["file"])
    }

    /// Files of older versions have no digest.
    @Test func withoutADigestASecretIsUnknown() async throws {
        let own = try link("?key=a")
        let part = try make(own, stores: false)
        try part.fill(0..<5000)
        part.sink.close()
        let again = try #require(try storage.unfinished(directory.place()))
        for query in ["?key=a", "?key=b"] { #expect(try again.source?.relation(to: link(query)) == .unknown) }
        for query in ["", "?id=a"] { #expect(try again.source?.relation(to: link(query)) == .different) }
        #expect(try storage.find(link("?key=b"), inDirectory: directory.path) == directory.place())
        _ = try await again.sink.publish(.plain(5000))
        guard case .finished(_, let source) = try storage.survey(directory.place()) else {
            Issue.record("not finished")
            return
        }
        for query in ["?key=a", "?key=b"] { #expect(try source.relation(to: link(query)) == .unknown) }
    }

    /// `find` prefers the same URL to one that may be the same.
    @Test func theSameURLIsFoundFirst() throws {
        for (name, query) in [("a", "?hdnea=1"), ("b", "?hdnea=2"), ("c", "?hdnea=3")] {
            var record = DownloadRecord.sample(length: 5000, name: name)
            let link = try link(query)
            record.source = link.text
            var terms = CreateTerms(journaled: true)
            terms.link = link
            try storage.create(directory.place(name), record: record, terms: terms).sink.close()
        }
        for (name, query) in [("a", "?hdnea=1"), ("b", "?hdnea=2"), ("c", "?hdnea=3"), ("a", "?hdnea=4")] {
            #expect(try storage.find(link(query), inDirectory: directory.path) == directory.place(name))
        }
    }
}
