/// The action of a download whose final name another file already has.
public enum ExistingPolicy: String, Hashable, Sendable, CaseIterable {
    /// Keeps the existing file and finishes without downloading.
    case skip
    /// Fails with the error `destinationExists`.
    case fail
    /// Replaces the existing file when the new file is complete.
    ///
    /// If the server chose the name, only a finished download of the same URL is replaced. Any other file makes the
    /// download fail with `destinationExists`. The same applies to ``update``.
    ///
    /// If a finished download is added again, it is downloaded again.
    case overwrite
    /// Adds the next free number to the name of the new file: `NAME (1)` and so on.
    case rename
    /// Replaces the existing file when the new file is complete, if the file on the server differs. Otherwise keeps it.
    ///
    /// If a finished download is added again, the server is asked again whether its file has changed.
    case update

    /// Returns whether the new file may replace the existing file under the same name.
    package var replaces: Bool { self == .overwrite || self == .update }

    /// Returns the policy for an existing file that is not a finished download of the same URL. `isUsersName`: the user
    /// chose its name, not the server.
    package func forOtherFiles(isUsersName: Bool) -> ExistingPolicy { replaces && !isUsersName ? .fail : self }
}

/// The options of a transfer, such as the number of connections. They contain no URL and no secret.
public struct TransferOptions: Hashable, Sendable {
    // The command line, the library, the HTTP API and the engine share this type. A new option is a property here, with
    // its name in JSON (`CodingKeys`), its range (`validate()`) and one line in `init(from:)` and in `encode(to:)`.

    /// The maximum number of connections, 1 to 128; `nil` means automatic, at most 16.
    public var connections: Int?
    /// The rate limit of this download in bytes per second; `nil` or 0 means no limit.
    public var rateLimit: Int64?
    /// The expected checksum; `nil` if unknown.
    ///
    /// A file with another checksum is not published: the file does not appear under its final name.
    public var checksum: Checksum?
    /// The action if another file already has the final name.
    public var existing = ExistingPolicy.fail
    /// The maximum time without a received byte, from 1 second to 86,400 seconds. After this time, the connection is
    /// replaced by a new one.
    public var stallTimeout = Duration.seconds(30)
    /// The maximum number of consecutive attempts without a received byte before the download fails; 0 means no limit.
    ///
    /// Until the first byte arrives, attempts are counted separately for each URL. `nil` means that the download waits
    /// for the network and resumes automatically.
    public var maximumTries: Int?
    /// The wait before the first retry, from 1 millisecond to 86,400 seconds. Each further failure doubles the wait, up
    /// to a minute.
    public var retryWait = Duration.seconds(1)
    /// The longest pause that a server may request (`Retry-After`) without making the download fail, from 1 millisecond
    /// to 31,622,400 seconds; `nil` means no limit. Needs ``maximumTries``.
    public var maximumWait: Duration?
    /// HTTP statuses after which a request is retried, in addition to those that are always retried: 202 and 400 to
    /// 599, except 407 and 416.
    public var retryStatuses: Set<Int> = []
    /// The maximum number of consecutive redirects, 0 to 100.
    public var maximumRedirects = 20
    /// The maximum size of the file in bytes; `nil` means no limit. A longer file fails with `fileTooLarge`.
    public var maximumSize: Int64?
    /// A Boolean value that indicates whether a redirect may lead from https to http, and a mirror of an https URL may
    /// use http.
    public var allowsDowngrade = false
    /// A Boolean value that indicates whether only HTTP/1.1 is used, even if the server offers HTTP/2.
    public var usesHTTP1Only = false
    /// A Boolean value that indicates whether the file is downloaded from the first byte to the last over one
    /// connection.
    public var isSequential = false
    /// A Boolean value that indicates whether the download may resume without proof that the file on the server is
    /// unchanged.
    ///
    /// This property matters if the server sends neither a strong ETag nor a suitable date. If `true`, only the length
    /// and the last bytes before the resume point are compared. If `false`, such a download restarts after an
    /// interruption.
    public var allowsUnsafeResume = false
    /// A Boolean value that indicates whether checksums that the server sends are ignored. `checksum` is still
    /// verified.
    ///
    /// Set this property if the server sends a wrong checksum.
    public var ignoresServerChecksums = false
    /// A Boolean value that indicates whether a web page is accepted even if the name or the URL is that of another
    /// kind of file. If `false`, such a page is refused as a probable login page.
    public var acceptsWebPages = false

    /// Creates the default options.
    public init() {}

    /// Returns whether `retryStatuses` may contain a status: 202 and the errors, except 407 and 416, which have other
    /// meanings.
    package static func mayRetry(status: Int) -> Bool {
        status == 202 || 400...599 ~= status && ![407, 416].contains(status)
    }
}

// MARK: Ranges

extension TransferOptions {
    /// Checks that the value of every option is in the range that the option's description states.
    ///
    /// - Throws: `unusableOption` for the first value outside its range.
    package func validate() throws(TowlineError) {
        if let connections, !(1...128).contains(connections) {
            throw Self.unusable("invalid number of connections \(connections): expected 1 to 128")
        }
        if let rateLimit, rateLimit < 0 {
            throw Self.unusable(
                "rateLimit: invalid value, expected 0 (no limit) or a positive number of bytes per second")
        }
        try Self.check(.stallTimeout, stallTimeout / .seconds(1), in: 1...86_400)
        try Self.check(.maximumTries, maximumTries ?? 0, in: 0...Int.max)
        try Self.check(.maximumSize, maximumSize ?? 0, in: 0...Int64.max)
        try Self.check(.retryWait, retryWait / .seconds(1), in: 0.001...86_400)
        if let maximumWait {
            try Self.check(.maximumWait, maximumWait / .seconds(1), in: 0.001...31_622_400)
            guard maximumTries != nil else {
                throw Self.unusable(
                    "maximumWait: needs maximumTries, because a download without a limit of attempts never fails for a"
                        + " wait")
            }
        }
        guard retryStatuses.allSatisfy(Self.mayRetry) else {
            throw Self.unusable("retryStatuses: invalid value, expected 202 or 400 to 599, except 407 and 416")
        }
        try Self.check(.maximumRedirects, maximumRedirects, in: 0...100)
    }

    /// Checks that the value of one option is in its range. `key` names the option in the error.
    private static func check<Value: Comparable>(
        _ key: CodingKeys, _ value: Value, in range: ClosedRange<Value>
    ) throws(TowlineError) {
        guard !range.contains(value) else { return }
        let limits = [range.lowerBound, range.upperBound].map { "\($0)" }.map {
            $0.hasSuffix(".0") ? String($0.dropLast(2)) : $0
        }
        throw unusable("\(key.rawValue): invalid value, expected \(limits[0]) to \(limits[1])")
    }

    private static func unusable(_ message: String) -> TowlineError { TowlineError(.unusableOption, message) }
}

// MARK: JSON

/// Encodes and decodes the options as a JSON object, for the HTTP API and stored requests. Durations are in seconds. A
/// missing member has its default value, and default values are not encoded.
extension TransferOptions: Codable {
    /// The names of the options in the HTTP API and in stored requests.
    package enum CodingKeys: String, CodingKey, CaseIterable {
        case connections, rateLimit, checksum, existing, stallTimeout, maximumTries, retryWait, maximumWait
        case retryStatuses, maximumRedirects, maximumSize
        case allowsDowngrade = "allowDowngrade"
        case usesHTTP1Only = "http1"
        case isSequential = "sequential"
        case allowsUnsafeResume = "unsafeResume"
        case ignoresServerChecksums = "ignoreServerChecksums"
        case acceptsWebPages = "acceptHTML"
    }

    /// Decodes options. Does not check their ranges.
    ///
    /// - Throws: `DecodingError` for a value of the wrong type; `TowlineError` for an invalid checksum or policy.
    public init(from decoder: any Decoder) throws {
        let values = try decoder.container(keyedBy: CodingKeys.self)
        connections = try values.decodeIfPresent(Int.self, forKey: .connections)
        rateLimit = try values.decodeIfPresent(Int64.self, forKey: .rateLimit)
        checksum = try values.decodeIfPresent(String.self, forKey: .checksum).map { try Checksum(parsing: $0) }
        if let name = try values.decodeIfPresent(String.self, forKey: .existing) {
            guard let policy = ExistingPolicy(rawValue: name) else {
                throw Self.unusable("existing: invalid value, expected fail, overwrite, rename, skip or update")
            }
            existing = policy
        }
        stallTimeout = try values.seconds(.stallTimeout) ?? stallTimeout
        maximumTries = try values.decodeIfPresent(Int.self, forKey: .maximumTries)
        retryWait = try values.seconds(.retryWait) ?? retryWait
        maximumWait = try values.seconds(.maximumWait)
        retryStatuses = Set(try values.decodeIfPresent([Int].self, forKey: .retryStatuses) ?? [])
        maximumRedirects = try values.decodeIfPresent(Int.self, forKey: .maximumRedirects) ?? maximumRedirects
        maximumSize = try values.decodeIfPresent(Int64.self, forKey: .maximumSize)
        allowsDowngrade = try values.flag(.allowsDowngrade)
        usesHTTP1Only = try values.flag(.usesHTTP1Only)
        isSequential = try values.flag(.isSequential)
        allowsUnsafeResume = try values.flag(.allowsUnsafeResume)
        ignoresServerChecksums = try values.flag(.ignoresServerChecksums)
        acceptsWebPages = try values.flag(.acceptsWebPages)
    }

    /// Encodes the options that differ from the defaults.
    public func encode(to encoder: any Encoder) throws { try encode(to: encoder, including: []) }

    /// Encodes the options that differ from the defaults, and those of `keys` also with their default values.
    package func encode(to encoder: any Encoder, including keys: Set<CodingKeys>) throws {
        let defaults = TransferOptions()
        var values = encoder.container(keyedBy: CodingKeys.self)
        func encode<Value: Encodable & Equatable>(_ value: Value, unless standard: Value, _ key: CodingKeys) throws {
            if value != standard || keys.contains(key) { try values.encode(value, forKey: key) }
        }
        try values.encodeIfPresent(connections, forKey: .connections)
        try values.encodeIfPresent(rateLimit, forKey: .rateLimit)
        try values.encodeIfPresent(checksum?.description, forKey: .checksum)
        try encode(existing.rawValue, unless: defaults.existing.rawValue, .existing)
        try encode(stallTimeout / .seconds(1), unless: defaults.stallTimeout / .seconds(1), .stallTimeout)
        try values.encodeIfPresent(maximumTries, forKey: .maximumTries)
        try encode(retryWait / .seconds(1), unless: defaults.retryWait / .seconds(1), .retryWait)
        try values.encodeIfPresent(maximumWait.map { $0 / .seconds(1) }, forKey: .maximumWait)
        try encode(retryStatuses.sorted(), unless: [], .retryStatuses)
        try encode(maximumRedirects, unless: defaults.maximumRedirects, .maximumRedirects)
        try values.encodeIfPresent(maximumSize, forKey: .maximumSize)
        try encode(allowsDowngrade, unless: false, .allowsDowngrade)
        try encode(usesHTTP1Only, unless: false, .usesHTTP1Only)
        try encode(isSequential, unless: false, .isSequential)
        try encode(allowsUnsafeResume, unless: false, .allowsUnsafeResume)
        try encode(ignoresServerChecksums, unless: false, .ignoresServerChecksums)
        try encode(acceptsWebPages, unless: false, .acceptsWebPages)
    }
}

extension KeyedDecodingContainer<TransferOptions.CodingKeys> {
    /// Decodes a Boolean option; `false` if it is missing.
    fileprivate func flag(_ key: Key) throws -> Bool { try decodeIfPresent(Bool.self, forKey: key) ?? false }

    /// Decodes a number of seconds, rounded to microseconds. A number that `Duration` cannot represent becomes a
    /// duration outside of the ranges that `validate()` accepts.
    fileprivate func seconds(_ key: Key) throws -> Duration? {
        guard let seconds = try decodeIfPresent(Double.self, forKey: key) else { return nil }
        return .microseconds(Int64((min(max(-1, seconds), 1e9) * 1e6).rounded()))
    }
}
