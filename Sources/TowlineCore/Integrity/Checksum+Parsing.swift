extension Checksum {
    /// Parses `ALGORITHM:HEX` or `ALGORITHM=HEX`, the forms of the `--checksum` option. 64 digits alone are a SHA-256.
    ///
    /// Case and dashes in the algorithm name are ignored: `SHA-256` equals `sha256`. `sha` means `sha1`.
    ///
    /// - Throws: `unusableOption` for an unknown algorithm, a wrong number of digits, or an invalid digit.
    public init(parsing text: String) throws(TowlineError) {
        if let value = Hexadecimal.decoded(text), let checksum = Checksum(algorithm: .sha256, value: value) {
            self = checksum
            return
        }
        let parts = text.split(maxSplits: 1, omittingEmptySubsequences: false) { $0 == ":" || $0 == "=" }
        let known = Algorithm.allCases.map(\.rawValue).joined(separator: ", ")
        guard parts.count == 2 else {
            let shown = TerminalSafeText.make(text, width: 40)
            throw TowlineError(
                .unusableOption, "invalid checksum '\(shown)': expected ALGORITHM:HEX, for example sha256:9f86d0…")
        }
        let name = String(decoding: parts[0].utf8.filter { $0 != 0x2D }.map(ASCII.lowercased), as: UTF8.self)
        guard let algorithm = Algorithm(rawValue: name == "sha" ? "sha1" : name) else {
            let shown = TerminalSafeText.make(String(parts[0]), width: 40)
            throw TowlineError(.unusableOption, "unknown checksum algorithm '\(shown)'; supported: \(known)")
        }
        guard let value = Hexadecimal.decoded(parts[1]), let checksum = Checksum(algorithm: algorithm, value: value)
        else {
            let digits = algorithm.byteCount * 2
            throw TowlineError(
                .unusableOption,
                "invalid \(algorithm.rawValue) checksum: expected exactly \(digits) hexadecimal digits")
        }
        self = checksum
    }

    /// The value of the checksum as lower-case hexadecimal digits.
    public var hex: String { Hexadecimal.encoded(value) }
}

extension Checksum: CustomStringConvertible {
    /// The checksum as text, for example `sha256:9f86d0…`. `init(parsing:)` accepts this text.
    public var description: String { "\(algorithm.rawValue):\(hex)" }
}
