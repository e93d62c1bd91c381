import TowlineCore

/// A limit that callers change while downloads run. The registry, the database of all downloads, stores it as a named
/// value, which replaces the limit of the configuration.
enum StoredLimit: Hashable, Sendable {
    /// The maximum number of downloads that run at the same time.
    case running(Int)
    /// The maximum number of downloads that run at the same time from one host.
    case perHost(Int)
    /// The rate limit for all downloads together, in bytes per second; 0 means no limit.
    case rate(Int64)
    /// The maximum number of running downloads of a group. `nil` means no limit, and 0 lets no download of the group
    /// start.
    case group(String, Int?)

    /// The prefix of the names under which the registry stores limits.
    static let prefix = "limit/"
    private static let groupPrefix = prefix + "group/"

    /// Creates a limit from its name and its value in the registry; `nil` if either is unknown.
    init?(name: String, value: String) {
        guard let number = Int64(value) else { return nil }
        switch name {
        case Self.running(0).name: self = .running(Int(clamping: number))
        case Self.perHost(0).name: self = .perHost(Int(clamping: number))
        case Self.rate(0).name: self = .rate(number)
        default:
            guard name.hasPrefix(Self.groupPrefix) else { return nil }
            self = .group(String(name.dropFirst(Self.groupPrefix.count)), Int(clamping: number))
        }
    }

    /// The name under which the registry stores the limit.
    var name: String {
        switch self {
        case .running: Self.prefix + "running"
        case .perHost: Self.prefix + "host"
        case .rate: Self.prefix + "rate"
        case .group(let group, _): Self.groupPrefix + group
        }
    }

    /// The text that the registry stores as the value of the limit; `nil` if the limit is removed.
    var value: String? {
        switch self {
        case .running(let count), .perHost(let count): String(count)
        case .rate(let rate): String(rate)
        case .group(_, let count): count.map { String($0) }
        }
    }

    /// Checks the value that a caller wants to set. Throws `unusableOption` if the limit is outside its range.
    func check() throws(TowlineError) {
        switch self {
        case .running(let count) where count < 1, .perHost(let count) where count < 1:
            throw TowlineError(.unusableOption, "invalid limit of running downloads \(count): expected 1 or more")
        case .rate(let rate) where rate < 0:
            throw TowlineError(
                .unusableOption, "invalid rate limit \(rate): expected bytes per second, or 0 for no limit")
        case .group(_, let count?) where count < 0:
            throw TowlineError(
                .unusableOption, "invalid limit \(count) for a group of downloads: expected 0 or more")
        default: return
        }
    }
}

extension Admission {
    /// Sets a limit on the number of running downloads. Ignores a rate limit, which the rate limiter of the transfers
    /// applies.
    mutating func set(_ limit: StoredLimit) {
        switch limit {
        case .running(let count): self.limit = count
        case .perHost(let count): hostLimit = count
        case .group(let group, let count): groupLimits[group] = count
        case .rate: break
        }
    }
}
