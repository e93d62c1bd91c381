/// A value of the header field Content-Encoding that only names the type of the stored file: `src.tar.gz` sent with
/// `Content-Encoding: gzip`.
///
/// Apache (`AddEncoding`), Twisted and object stores send such labels. The body is the stored file, and its ranges are
/// ranges of the stored bytes. The label is ignored if the name and the first bytes of the file agree.
package enum CodingLabel: Hashable, Sendable {
    /// It is not known whether the Content-Encoding of the bytes in the part file only named the type of the file: an
    /// earlier run wrote the bytes, and its journal does not record this.
    case unknown
    /// The response that the bytes in the part file come from had no Content-Encoding that only names the type of the
    /// file.
    case none
    /// The response that the bytes in the part file come from had this Content-Encoding, in lower case without `x-`,
    /// and it only named the type of the stored file.
    case coding(String)

    /// Creates the label of a response whose bytes are accepted for the part file: its Content-Encoding, if that only
    /// names the type of the stored file.
    init(_ facts: ResponseFacts) {
        self = facts.label.map { .coding(Self.plain($0)) } ?? .none
    }

    /// Returns the coding in lower case without `x-`: `x-gzip` means `gzip` (RFC 9110 §8.4.1).
    private static func plain(_ coding: String) -> String {
        let coding = ASCII.lowercased(coding)
        return coding.hasPrefix("x-") ? String(coding.dropFirst(2)) : coding
    }

    /// Returns the signatures (first bytes) of the file types that the names of a response suggest, to test whether its
    /// Content-Encoding only names the file type. Empty if its content coding cannot be a label. An empty
    /// signature fits every body.
    ///
    /// - Parameters:
    ///   - verdict: the verdict on the head of the response.
    ///   - url: the URL of the response, whose file name counts too.
    package static func signatures(
        for verdict: ResponseVerdict, from url: HTTPURL, _ question: ResponseQuestion
    ) -> [[UInt8]] {
        guard let facts = WebPage.facts(of: verdict, question), facts.contentCoding != nil else { return [] }
        return signatures(facts, names: [SafeFileName.ofURL(url)], question)
    }

    private static func signatures(
        _ facts: ResponseFacts, names: [String], _ question: ResponseQuestion
    ) -> [[UInt8]] {
        let names = names + [question.fileName ?? "", facts.fileName, question.nameOfURL]
        return Set(names).flatMap { signatures(ofName: $0, facts.contentCoding ?? "") }
    }

    /// Returns whether a body, by its first `bytes`, begins with one of the signatures, so that its Content-Encoding is
    /// only a label; `nil` if more bytes are needed.
    package static func agrees(_ bytes: some Collection<UInt8>, with signatures: [[UInt8]]) -> Bool? {
        if signatures.contains(where: { bytes.starts(with: $0) }) { return true }
        return signatures.contains { $0.count > bytes.count && $0.starts(with: bytes) } ? nil : false
    }

    /// Returns whether a partial response with a content coding may be joined to the part file as if it had no coding:
    /// in the first response, the same coding only named the type of the stored file, and the body is as long as
    /// `range`. A body that was compressed for the transfer has another length.
    func allows(_ facts: ResponseFacts, _ range: ByteRange, _ question: ResponseQuestion) -> Bool {
        guard let coding = facts.contentCoding, case .length(range.count) = facts.contentLength else { return false }
        switch self {
        case .none: return false
        case .coding(let label): return label == Self.plain(coding)
        case .unknown: return !Self.signatures(facts, names: [], question).isEmpty
        }
    }

    /// Returns whether a Content-Encoding names at least one known coding, which changes the bytes of a body. Some
    /// servers send words like `utf-8`.
    static func isKnown(_ coding: String) -> Bool {
        coding.utf8.split(separator: 0x2C).contains { member in
            codings.contains(plain(String(decoding: member.filter { $0 > 0x20 }, as: UTF8.self)))
        }
    }

    /// The known content codings: those of IANA's registry, and compression formats that servers name without
    /// registration.
    private static let codings: Set<String> = [
        "gzip", "deflate", "br", "zstd", "compress", "dcb", "dcz", "exi", "pack200-gzip", "aes128gcm", "bzip2", "bz2",
        "xz", "lzma", "lz4", "snappy", "zip",
    ]

    // MARK: Kinds of file

    private static func signatures(ofName name: String, _ coding: String) -> [[UInt8]] {
        guard let dot = name.utf8.lastIndex(of: 0x2E) else { return [] }
        let type = ASCII.lowercased(name[dot...].dropFirst())
        // Brotli has no signature.
        if type == "br" { return ASCII.lowercased(coding) == "br" ? [[]] : [] }
        return kinds.filter { $0.types.contains(type) }.flatMap(\.signatures)
    }

    /// A type of file: the extensions of its names, and the byte sequences that its files begin with.
    private struct Kind {
        let types: Set<String>
        let signatures: [[UInt8]]

        init(_ types: String, _ signatures: [[UInt8]]) {
            self.types = Set(types.split(separator: " ").map(String.init))
            self.signatures = signatures
        }
    }

    private static let kinds = [
        Kind("gz tgz gzip taz svgz emz wmz adz cpgz", [[0x1F, 0x8B]]),
        Kind("z taz", [[0x1F, 0x9D], [0x1F, 0xA0]]),
        Kind("bz2 bz tbz tbz2", [Array("BZh".utf8)]),
        Kind("xz txz", [[0xFD, 0x37, 0x7A, 0x58, 0x5A, 0x00]]),
        Kind("zst tzst", [[0x28, 0xB5, 0x2F, 0xFD]]),
        Kind("lz4", [[0x04, 0x22, 0x4D, 0x18]]),
        Kind("lz tlz", [Array("LZIP".utf8)]),
        Kind("lzma", [[0x5D, 0x00, 0x00]]),
        Kind(
            "zip jar war ear apk aab xpi whl ipa nupkg epub docx xlsx pptx odt ods odp cbz vsix kmz appx msix npz pt",
            [[0x50, 0x4B, 0x03, 0x04], [0x50, 0x4B, 0x05, 0x06]]),
        Kind("7z", [[0x37, 0x7A, 0xBC, 0xAF, 0x27, 0x1C]]),
        Kind("rar cbr", [Array("Rar!".utf8)]),
        Kind("deb ar a", [Array("!<arch>\n".utf8)]),
        Kind("rpm", [[0xED, 0xAB, 0xEE, 0xDB]]),
        Kind("cab", [Array("MSCF".utf8)]),
        Kind("pdf", [Array("%PDF".utf8)]),
        Kind("exe dll msu", [Array("MZ".utf8)]),
        Kind("png", [[0x89, 0x50, 0x4E, 0x47]]),
        Kind("jpg jpeg", [[0xFF, 0xD8, 0xFF]]),
        Kind("wasm", [[0x00, 0x61, 0x73, 0x6D]]),
        Kind("h5 hdf5", [[0x89, 0x48, 0x44, 0x46]]),
    ]
}

extension ResponseVerdict {
    /// This verdict with the content coding treated as a label, the name of the file's type (`CodingLabel`): the body
    /// counts as the stored file.
    package var withoutLabel: ResponseVerdict {
        switch self {
        case .partial(let range, let facts): .partial(range, facts.withoutLabel)
        case .whole(let facts): .whole(facts.withoutLabel)
        case .changed(let reason, let facts, isWhole: true):
            .changed(reason: reason, facts.withoutLabel, isWhole: true)
        case .rangeIgnored(let facts): .rangeIgnored(facts.withoutLabel)
        default: self
        }
    }
}
