/// The sources (URLs) of one transfer's file: the primary one, the mirrors, and the redirects of requests to them.
struct TransferSources: Sendable {
    let terms: TransferTerms
    /// The source whose responses define the file, called the primary.
    var primary: FileSource
    /// The other sources that may have the same file. Their bytes are used only with proof that it is the same.
    var mirrors: [FileSource]
    /// The redirect target that is still to be requested, if any, and whether a redirect has led away from https.
    var redirects = RedirectState()
    /// The checksum error of a replaced source that sent all bytes; `nil` once bytes of another source are written.
    var refutation: TowlineError?

    init(_ terms: TransferTerms) {
        self.terms = terms
        primary = FileSource(terms.source, nameOfURL: terms.nameOfURL)
        mirrors = terms.mirrors.map { FileSource($0) }
    }

    subscript(source: SourceID) -> FileSource {
        get {
            switch source {
            case .primary: primary
            case .mirror(let index): mirrors[index]
            }
        }
        set {
            switch source {
            case .primary: primary = newValue
            case .mirror(let index): mirrors[index] = newValue
            }
        }
    }

    /// Records that no mirror has been compared with the primary source yet, because the download begins again. Mirrors
    /// that sent other bytes are still known as different.
    mutating func forgetSamples() {
        for index in mirrors.indices where mirrors[index].sample != .differs { mirrors[index].sample = .open }
    }

    /// Forgets the bytes that the sources sent, because they are discarded.
    mutating func forgetBytes() {
        forgetSamples()
        for index in mirrors.indices { mirrors[index].brought = ByteRangeSet() }
    }

    /// Returns the URL that a redirect of an attempt leads to.
    ///
    /// - Throws: an error if the redirect cannot be followed.
    func target(of location: String, after plan: AttemptPlan) throws(TowlineError) -> HTTPURL {
        try RedirectPolicy.target(
            of: location, from: plan.url, chain: plan.chain, source: self[plan.source].url, terms)
    }

    /// Resets the waits and counts of failures of all sources (URLs), so that each may get a request now.
    mutating func forgetFailures() {
        (primary.failures, primary.tries, primary.notBefore) = (0, 0, nil)
        for index in mirrors.indices {
            (mirrors[index].failures, mirrors[index].tries, mirrors[index].notBefore) = (0, 0, nil)
        }
    }
}
