/// The identifier of a download: 128 bits, never reused.
///
/// An identifier has the layout of a ULID: 48 bits for the creation time in milliseconds since 1970, then 80 random
/// bits. Sorted identifiers are therefore in the order in which the downloads were added. The text form has 26
/// characters of Crockford's base 32, written in upper case and read in either case.
public struct DownloadID: Hashable, Comparable, Sendable, CustomStringConvertible {
    static let digits = Array("0123456789ABCDEFGHJKMNPQRSTVWXYZ".utf8)
    private let high: UInt64
    private let low: UInt64

    /// Creates an identifier from a time in milliseconds since 1970 and 80 random bits (`random.high`: the highest 16).
    package init(milliseconds: UInt64, random: (high: UInt16, low: UInt64)) {
        high = milliseconds << 16 | UInt64(random.high)
        low = random.low
    }

    /// Parses the text form of an identifier. Returns `nil` if the text is not a valid identifier.
    public init?(_ text: some StringProtocol) {
        guard text.utf8.count == 26 else { return nil }
        var high: UInt64 = 0
        var low: UInt64 = 0
        for byte in text.utf8 {
            let upper = byte >= 0x61 ? byte & 0xDF : byte
            guard let digit = Self.digits.firstIndex(of: upper), high >> 59 == 0 else { return nil }
            high = high << 5 | low >> 59
            low = low << 5 | UInt64(digit)
        }
        self.high = high
        self.low = low
    }

    /// The identifier as 16 bytes, most significant first. They sort in the same order as the text forms.
    package var bytes: [UInt8] {
        [high, low].flatMap { word in (0..<8).map { UInt8(truncatingIfNeeded: word >> (56 - 8 * UInt64($0))) } }
    }

    /// Creates an identifier from `bytes`. Returns `nil` unless there are 16.
    package init?(bytes: some Collection<UInt8>) {
        guard bytes.count == 16 else { return nil }
        high = bytes.prefix(8).reduce(0) { $0 << 8 | UInt64($1) }
        low = bytes.suffix(8).reduce(0) { $0 << 8 | UInt64($1) }
    }

    /// Returns whether `left` was created before `right`.
    public static func < (left: DownloadID, right: DownloadID) -> Bool {
        (left.high, left.low) < (right.high, right.low)
    }

    /// The text form: 26 upper-case characters.
    public var description: String {
        var characters: [UInt8] = []
        var (high, low) = (high, low)
        for _ in 0..<26 {
            characters.append(Self.digits[Int(low & 31)])
            low = low >> 5 | high << 59
            high >>= 5
        }
        return String(decoding: characters.reversed(), as: UTF8.self)
    }
}

extension DownloadID: Codable, LosslessStringConvertible {
    /// Parses the text form of an identifier. Returns `nil` if the text is not a valid identifier.
    public init?(_ description: String) { self.init(description[...]) }

    /// Decodes an identifier from its text form of 26 characters.
    public init(from decoder: any Decoder) throws { self = try DownloadID.decoded(from: decoder) }

    /// Encodes the identifier in its text form of 26 characters.
    public func encode(to encoder: any Encoder) throws { try encodeDescription(to: encoder) }
}

extension LosslessStringConvertible {
    /// Decodes a value from the text that `encodeDescription` wrote: the `Codable` form of `DownloadID` and
    /// `DownloadState`.
    static func decoded(from decoder: any Decoder) throws -> Self {
        let container = try decoder.singleValueContainer()
        guard let value = Self(try container.decode(String.self)) else {
            throw DecodingError.dataCorruptedError(in: container, debugDescription: "not a valid \(Self.self)")
        }
        return value
    }

    /// Encodes the description of the value as a single text, which `decoded(from:)` reads.
    func encodeDescription(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(description)
    }
}
