import CCrypto
internal import TowlineCore

/// A salted digest of the URL of a download, for a URL whose text without secrets does not identify it. Journals and
/// finished files store it, because the URL itself may be secret.
struct LinkDigest: Equatable, Sendable {
    /// The number of bytes of the salt and of each digest.
    private static let (saltSize, digestSize) = (16, 32)
    /// The maximum length in bytes of an encoded digest.
    static let longest = saltSize + 2 * digestSize

    /// The salt, the SHA-256 of the salt and the URL without the fragment and, if the URL has a signature scheme, the
    /// SHA-256 of the salt and the URL without the signature.
    let bytes: [UInt8]

    /// Computes the digest with a random salt. Returns `nil` if the URL needs no digest.
    init?(of link: LinkIdentity) {
        guard link.needsDigest else { return nil }
        var generator = SystemRandomNumberGenerator()
        let salt = (0..<Self.saltSize).map { _ in UInt8.random(in: 0...255, using: &generator) }
        let unsigned = link.unsigned.map { Self.digest(salt, $0) } ?? []
        bytes = salt + Self.digest(salt, link.exact) + unsigned
    }

    /// Decodes a stored digest; returns `nil` for another length.
    init?(stored bytes: some Collection<UInt8>) {
        guard [Self.saltSize + Self.digestSize, Self.longest].contains(bytes.count) else { return nil }
        self.bytes = Array(bytes)
    }

    /// Compares the digest with a URL.
    func match(_ link: LinkIdentity) -> LinkIdentity.DigestMatch {
        let salt = Array(bytes.prefix(Self.saltSize))
        let rest = bytes.dropFirst(Self.saltSize)
        if rest.prefix(Self.digestSize).elementsEqual(Self.digest(salt, link.exact)) { return .exact }
        guard let unsigned = link.unsigned, rest.count > Self.digestSize else { return .none }
        return rest.dropFirst(Self.digestSize).elementsEqual(Self.digest(salt, unsigned)) ? .unsigned : .none
    }

    private static func digest(_ salt: [UInt8], _ text: String) -> [UInt8] {
        let input = salt + Array(text.utf8)
        var value = [UInt8](repeating: 0, count: digestSize)
        // Without a digest no URL is recognized, which is the only consequence.
        return ccrypto_sha256(input, input.count, &value) == 1 ? value : []
    }
}
