extension Checksum {
    /// Parses `ALGORITHM:HEX` as `--checksum` gives it. The algorithm's case and dashes do not matter: `SHA-256` is
    /// `sha256`, and `sha` is `sha1`.
    ///
    /// - Throws: `unusableOption` for an unknown algorithm, a wrong number of digits, or what is no digit.
    public init(parsing text: String) throws(TowlineError) {
        let parts = text.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
        let known = Algorithm.allCases.map(\.rawValue).joined(separator: ", ")
        guard parts.count == 2 else {
            throw TowlineError(.unusableOption, "a checksum is written ALGORITHM:HEX, for example sha256:9f86d0…")
        }
        let name = String(decoding: parts[0].utf8.filter { $0 != 0x2D }.map(ASCII.lowercased), as: UTF8.self)
        guard let algorithm = Algorithm(rawValue: name == "sha" ? "sha1" : name) else {
            let shown = TerminalSafeText.make(String(parts[0]), width: 40)
            throw TowlineError(.unusableOption, "'\(shown)' is no checksum algorithm; known are \(known)")
        }
        guard let value = Hexadecimal.decoded(parts[1]), let checksum = Checksum(algorithm: algorithm, value: value)
        else {
            let digits = algorithm.byteCount * 2
            throw TowlineError(.unusableOption, "a \(algorithm.rawValue) checksum has \(digits) hexadecimal digits")
        }
        self = checksum
    }

    /// The value in lower-case hexadecimal digits.
    public var hex: String { Hexadecimal.encoded(value) }
}

extension Checksum: CustomStringConvertible {
    /// `sha256:9f86d0…`, in full; `init(parsing:)` reads it.
    public var description: String { "\(algorithm.rawValue):\(hex)" }
}
