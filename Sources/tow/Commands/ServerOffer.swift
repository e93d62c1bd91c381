import TowlineCore
import TowlineEngine

/// The properties of a server's response for a URL, for display.
struct ServerOffer {
    /// The URL after all redirects, without secrets.
    var finalURL: String
    /// The URLs of the redirects, without secrets.
    var redirects: [String]
    var status: Int
    var httpVersion: String
    var completeLength: Int64?
    var entityTag: String?
    var lastModified: String?
    /// `true` if the server supports range requests: it sent a 206 response or an `Accept-Ranges` field that says it
    /// does.
    var ranges: Bool
    /// Text that says whether a download can resume, and why.
    var resumable: String
    var contentType: String?
    /// The name that a download would get.
    var fileName: String?
    var digests: [Checksum]

    /// Returns a few lines, each with a label and a value.
    func text(style: TerminalStyle) -> String {
        var lines = [style.paint(TerminalSafeText.make(finalURL), .strong)]
        lines +=
            FactSheet([
                ("status", "\(status) (\(httpVersion))"),
                ("redirects", redirects.isEmpty ? nil : redirects.joined(separator: " → ")),
                ("name", fileName),
                ("size", completeLength.map { "\(ByteCountText.format($0)) (\($0) bytes)" } ?? "unknown"),
                ("type", contentType),
                ("range requests", ranges ? "supported" : "not supported"),
                ("resumable", resumable),
                ("ETag", entityTag),
                ("Last-Modified", lastModified),
                ("checksums", digests.isEmpty ? nil : digests.map(\.description).joined(separator: " ")),
            ]).lines
        return lines.joined(separator: "\n") + "\n"
    }

    /// The properties as a JSON object.
    var json: JSONObject {
        var object = JSONObject()
        object.add("url", finalURL)
        object.add("redirects", redirects)
        object.add("status", status)
        object.add("httpVersion", httpVersion)
        object.add("completeLength", completeLength)
        object.add("entityTag", entityTag)
        object.add("lastModified", lastModified)
        object.add("ranges", ranges ? "yes" : "no")
        object.add("resumable", resumable)
        object.add("contentType", contentType)
        object.add("name", fileName)
        object.add("digests", digests.map(\.description))
        return object
    }
}

extension ServerOffer {
    /// Creates an offer from the report of the engine.
    init(_ report: ProbeReport) {
        let facts = report.facts
        self.init(
            finalURL: report.finalURL.withoutSecrets, redirects: report.redirects.map(\.withoutSecrets),
            status: report.head.status, httpVersion: Self.name(of: report.head.version),
            completeLength: facts.representation.completeLength,
            entityTag: facts.representation.entityTag?.fieldValue,
            lastModified: facts.representation.lastModified?.fieldValue, ranges: report.offersRanges,
            resumable: OptionNames.add(to: report.resumption), contentType: facts.representation.mediaType,
            fileName: facts.fileName,
            digests: facts.wholeDigests.map(\.checksum))
    }

    private static func name(of version: ResponseHead.Version) -> String {
        switch version {
        case .http1_0: "HTTP/1.0"
        case .http1_1: "HTTP/1.1"
        case .http2: "HTTP/2"
        case .http3: "HTTP/3"
        }
    }
}
