import TowlineCore
import TowlineEngine

@testable import TowlineDisk

// Tests give URLs as text.

extension LinkIdentity {
    static func of(_ text: String) throws(TowlineError) -> LinkIdentity { LinkIdentity(try HTTPURL(parsing: text)) }
}

extension StoredSource {
    static func == (source: StoredSource, text: String) -> Bool {
        (try? LinkIdentity.of(text)).map { source.relation(to: $0) } == .same
    }
}

extension Storage {
    func find(source: String, inDirectory directory: String) -> Place? {
        (try? LinkIdentity.of(source)).flatMap { find($0, inDirectory: directory) }
    }

    func prove(_ place: Place, source: String, checksum: Checksum) async throws(TowlineError) -> FileProof {
        try await prove(place, link: .of(source), checksum: checksum)
    }
}

extension FileStorage {
    func discard(_ place: Place, from sources: [String]) throws(TowlineError) {
        try discard(place, from: sources.map { text throws(TowlineError) in try LinkIdentity.of(text) })
    }

    func isPublished(_ place: Place, from sources: [String], length: Int64?) throws(TowlineError) -> Bool {
        let links = try sources.map { text throws(TowlineError) in try LinkIdentity.of(text) }
        return try isPublished(place, from: links, length: length)
    }
}

extension SmallFile {
    init(body: any BufferedBody, source: String, modified: Int64?, durable: Bool) throws(TowlineError) {
        self.init(body: body, link: try .of(source), modified: modified, durable: durable)
    }
}
