import FaultServer
import Fuzzing
import Testing
import TowlineCore
import TransferSimulation

@testable import TowlineEngine

/// Tests the rule "Believing a change" of docs/http-rules.md with random sequences of responses. Success means that the
/// published bytes are the first version, or one that the rule accepts. Held or finished bytes are gone only after
/// that.
@Suite("Believing a change") struct BelievedChangeTests {
    /// The number of sequences; larger if `TOWLINE_TORTURE` is set.
    private static let sequences = FuzzSettings.isLong ? 3000 : 400

    static let old = Version(seed: 1, length: 1_300_000)
    static let new = Version(seed: 2, length: 1_200_000)
    static let held: Int64 = 1_150_000
    /// The file of another URL, which differs in its query.
    private static let other = Version(seed: 3, length: 1_300_000)

    /// The situation in which the responses arrive.
    enum Situation: CaseIterable {
        /// No byte is held.
        case first
        /// An earlier run left a part file.
        case resume
        /// A finished file may be updated.
        case update
        /// A part file of another URL has the name.
        case otherPart
        /// A finished file of another URL has the name.
        case otherFile
    }

    /// One response of a sequence.
    struct Offer: CustomStringConvertible {
        enum Kind: CaseIterable {
            case file, cutFile, changed, json, xml, text, problem, unlabelled, mislabelled, page, empty, coded, refusal
            case failure, endless, truncated, part, silent
        }

        var kind: Kind
        /// `true` if the response has an ETag.
        var hasValidator: Bool
        var status: Int

        init(_ kind: Kind, hasValidator: Bool = false, status: Int = 403) {
            (self.kind, self.hasValidator, self.status) = (kind, hasValidator, status)
        }

        init(using generator: inout Generator) {
            kind = Kind.allCases.randomElement(using: &generator) ?? .file
            hasValidator = Bool.random(using: &generator)
            let statuses = [400, 401, 403, 404, 410, 416, 419, 429, 440, 498, 500, 502, 503]
            status = statuses.randomElement(using: &generator) ?? 403
        }

        var description: String { "\(kind)\(hasValidator ? "+tag" : "")\(kind == .refusal ? " \(status)" : "")" }

        func reply(_ context: RequestContext) -> Reply {
            switch kind {
            case .file: return context.correct
            case .cutFile: return cut(context.correct, context.version)
            case .changed:
                guard !hasValidator else { return context.correct(of: new) }
                return whole("application/octet-stream", [.content(new.content, 0..<new.length)], new.length)
            case .json: return error("application/json", "{\"error\":\"too many requests\"}")
            case .xml: return error("application/xml", "<Error><Code>SlowDown</Code></Error>")
            case .text: return error("text/plain", "busy\n")
            case .problem: return error("application/problem+json", "{\"title\":\"busy\"}")
            case .unlabelled: return error(nil, "too many requests\n")
            case .mislabelled: return error("application/octet-stream", "the link has expired")
            case .page: return error("text/html", "<!doctype html><title>Log in</title>")
            case .empty: return error(nil, "")
            case .coded:
                let bytes: [UInt8] = [0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 3, 0x33, 0x4E, 3, 0]
                let reply = whole(nil, [.bytes(bytes)], Int64(bytes.count))
                return reply.head { $0.set("Content-Encoding", "gzip") }
            case .refusal: return Reply(status, text: "no\n")
            case .failure: return Reply([.reset])
            case .endless: return unending(error("application/octet-stream", "busy\n"))
            case .truncated: return unending(cut(context.correct, context.version))
            case .part: return part(context)
            case .silent: return context.correct.body([.reset])
            }
        }

        /// Returns a response whose body breaks in the middle.
        private func cut(_ reply: Reply, _ version: Version) -> Reply {
            Reply(
                reply.steps.flatMap { step -> [Reply.Step] in
                    guard case .content(let content, let range) = step else { return [step] }
                    return [.content(content, range.lowerBound..<(range.lowerBound + range.upperBound) / 2), .reset]
                })
        }

        /// Returns a response without a length, whose end is that of the connection.
        private func unending(_ reply: Reply) -> Reply {
            let steps = reply.steps.filter { if case .reset = $0 { false } else { true } }
            return Reply(steps + [.close]).head {
                $0.status = 200
                for name in ["Content-Length", "Content-Range"] { $0.remove(name) }
                if !hasValidator { for name in ["ETag", "Last-Modified"] { $0.remove(name) } }
            }
        }

        /// Returns an error that claims to be the requested part of the file.
        private func part(_ context: RequestContext) -> Reply {
            let text = Array((hasValidator ? "<!doctype html><p>busy" : "{\"error\":\"busy\"}").utf8)
            return context.correct.body([.bytes(text), .lastChunk]).head {
                $0.remove("Content-Length")
                $0.set("Transfer-Encoding", "chunked")
                $0.set("Content-Type", hasValidator ? "text/html" : "application/json")
            }
        }

        private func error(_ type: String?, _ text: String) -> Reply {
            let bytes = Array(text.utf8)
            return whole(type, bytes.isEmpty ? [] : [.bytes(bytes)], Int64(bytes.count))
        }

        private func whole(_ type: String?, _ body: [Reply.Step], _ length: Int64) -> Reply {
            var head = ReplyHead(200, [("Content-Length", String(length))])
            if let type { head.set("Content-Type", type) }
            if hasValidator { head.set("ETag", "\"\(kind)\"") }
            return Reply([.head(head)] + body)
        }
    }

    /// A sequence of responses, after which the server always sends the last one.
    struct Sequence: CustomStringConvertible {
        var situation: Situation
        var offers: [Offer]
        /// `true` if the first version has no validators.
        var lacksValidator = false

        init(_ situation: Situation, _ offers: [Offer], lacksValidator: Bool = false) {
            (self.situation, self.offers, self.lacksValidator) = (situation, offers, lacksValidator)
        }

        init(using generator: inout Generator) {
            situation = Situation.allCases.randomElement(using: &generator) ?? .first
            let count = Int.random(in: 1...6, using: &generator)
            offers = (0..<count).map { _ in Offer(using: &generator) }
            lacksValidator = Int.random(in: 0..<4, using: &generator) == 0
            if ![.resume, .update].contains(situation) {
                offers[0] = Offer(Bool.random(using: &generator) ? .cutFile : .silent)
            }
        }

        var description: String {
            "\(situation)\(lacksValidator ? ", no validator" : ""): \(offers.map(\.description).joined(separator: ", "))"
        }
    }

    /// Downloads with a sequence of responses, and returns a description of what is wrong; `nil` if nothing is.
    static func violation(_ sequence: Sequence) throws -> String? {
        var old = old
        if sequence.lacksValidator { (old.etag, old.lastModified) = (.absent, nil) }
        if [.otherPart, .otherFile].contains(sequence.situation) { return try violation(besideAnother: sequence, old) }
        let site = SimulatedSite(Resource(old))
        // Pending timers keep references to the site.
        defer { site.restart() }
        var base = 0
        switch sequence.situation {
        case .first, .otherPart, .otherFile: break
        case .resume: base = try site.interrupt(after: held).requests
        case .update:
            guard try site.download().succeeded else { return "the first download failed" }
            base = site.server.requests.count
        }
        let first = base
        site.server.set(behaviour(sequence.offers, after: first), for: SimulatedSite.path)
        let outcome = try site.download {
            $0.maximumTries = 4
            if sequence.situation == .update { $0.existing = .update }
        }
        let versions = [old, new]
        let published = site.published(versions)
        guard outcome.succeeded else {
            // The held bytes are gone only if a new version was begun.
            if sequence.situation == .update { return published == old ? nil : "the finished file is gone" }
            // If no byte of the first response arrived, there is no part file to keep.
            let hadBytes = sequence.situation == .resume || sequence.offers[0].kind != .silent
            guard site.hasPart || !hadBytes else { return "the part file is gone: \(outcome.message)" }
            guard sequence.situation == .resume else { return nil }
            return site.storage.versions.contains { $0.count >= held } ? nil : "held bytes are gone: \(outcome.message)"
        }
        return violation(published, sequence, site, first)
    }

    private static func behaviour(_ offers: [Offer], after first: Int) -> Behaviour {
        Behaviour { context in offers[min(context.request.index - first, offers.count - 1)].reply(context) }
    }

    /// Downloads while the bytes of another URL have the name. They stay, whatever the server sends.
    private static func violation(besideAnother sequence: Sequence, _ old: Version) throws -> String? {
        let site = SimulatedSite(Resource(other))
        defer { site.restart() }
        if sequence.situation == .otherPart {
            try site.interrupt(after: held)
        } else {
            guard try site.download().succeeded else { return "the first download failed" }
        }
        let first = site.server.requests.count
        site.server.replace(SimulatedSite.path, with: old)
        site.server.set(behaviour(sequence.offers, after: first), for: SimulatedSite.path)
        let outcome = try site.download(SimulatedSite.path + "?key=2") {
            $0.maximumTries = 4
            $0.target = .file(directory: SimulatedSite.directory, name: nil)
        }
        let stays =
            sequence.situation == .otherPart
            ? site.storage.versions.contains { $0.count >= held } : site.published([other]) != nil
        guard stays else { return "the bytes of the other URL are gone: \(outcome.message)" }
        guard outcome.succeeded else { return nil }
        let name = SimulatedSite.name.replacing(".", with: " (1).")
        return violation(site.published([old, new], name: name), sequence, site, first)
    }

    /// Returns what is wrong with a published version; `nil` if nothing is.
    private static func violation(
        _ published: Version?, _ sequence: Sequence, _ site: SimulatedSite, _ first: Int
    ) -> String? {
        if published?.length == old.length { return nil }
        // A short text with a new validator and without a text type is believed if at most 1 MiB is held.
        let tagged = sequence.offers.filter(\.hasValidator).map(\.kind)
        let isTaggedText = tagged.contains { [.unlabelled, .mislabelled, .endless].contains($0) }
        let isFirst = ![.resume, .update].contains(sequence.situation)
        if published == nil, isFirst, isTaggedText, !sequence.lacksValidator { return nil }
        guard published == new else { return "published \(site.firstBytes)" }
        return isBelievable(sequence, site.server.requests.dropFirst(first)) ? nil : "the new version was not confirmed"
    }

    /// Returns whether the new version may have been accepted: it had a validator as the old one did, or a second
    /// request for the whole file, at least two seconds after a first response with the new version, got it too.
    private static func isBelievable(
        _ sequence: Sequence, _ requests: ArraySlice<SimulatedServer.Request>
    ) -> Bool {
        func offer(_ index: Int) -> Offer { sequence.offers[min(index, sequence.offers.count - 1)] }
        let sent = requests.enumerated().filter { offer($0.offset).kind == .changed }
        // A body that ends with the connection may be the beginning of the new version.
        let shown = requests.enumerated().filter { [.changed, .truncated].contains(offer($0.offset).kind) }
        if sent.contains(where: { offer($0.offset).hasValidator && !sequence.lacksValidator }) { return true }
        return sent.contains { later in
            later.element.field("Range") == nil && later.element.field("Cache-Control") == "no-cache"
                && shown.contains { later.element.time - $0.element.time >= .seconds(2) }
        }
    }

    /// Sequences that lost held bytes.
    @Test(arguments: [
        [Offer(.page), Offer(.empty, hasValidator: true), Offer(.truncated), Offer(.part), Offer(.truncated)],
        [
            Offer(.changed), Offer(.part), Offer(.xml, hasValidator: true), Offer(.cutFile),
            Offer(.changed, hasValidator: true), Offer(.text, hasValidator: true),
        ],
    ]) func foundSequences(_ offers: [Offer]) throws {
        #expect(try Self.violation(Sequence(.resume, offers)) == nil)
    }

    @Test func successMeansTheFile() throws {
        var generator = Generator(seed: UInt64(truncatingIfNeeded: FuzzSettings.seed))
        var counts: [String: Int] = [:]
        for run in 0..<Self.sequences {
            let sequence = Sequence(using: &generator)
            if let violation = try Self.violation(sequence) {
                counts[violation, default: 0] += 1
                if counts[violation] == 1 { Issue.record("run \(run), \(sequence): \(violation)") }
            }
        }
    }
}

extension SimulatedSite {
    /// The first bytes of the published file, as text.
    fileprivate var firstBytes: String {
        let file = storage.files[Self.directory + "/" + Self.name]
        return String(decoding: file?.bytes.prefix(40) ?? [], as: UTF8.self) + " (\(file?.bytes.count ?? -1) bytes)"
    }
}
