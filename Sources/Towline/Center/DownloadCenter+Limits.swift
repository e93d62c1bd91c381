import TowlineCore
import TowlineEngine

/// Limits that callers change while downloads run. The registry, the database of all downloads, stores them.
extension DownloadCenter {
    private enum Name {
        static let running = "limit/running"
        static let perHost = "limit/host"
        static let rate = "limit/rate"
        static let group = "limit/group/"
    }

    /// Loads the limits that an earlier process stored in the registry, which replace those of the configuration.
    /// Called at launch.
    func readLimits() async throws(TowlineError) {
        for (name, value) in try await registry.values(prefix: "limit/") {
            guard let number = Int64(value) else { continue }
            switch name {
            case Name.running: admission.limit = Int(clamping: number)
            case Name.perHost: admission.hostLimit = Int(clamping: number)
            case Name.rate: services.limiter.setRate(number)
            default:
                guard name.hasPrefix(Name.group) else { continue }
                admission.groupLimits[String(name.dropFirst(Name.group.count))] = Int(clamping: number)
            }
        }
    }

    func setMaximumRunning(_ count: Int) async throws(TowlineError) {
        try await keep(Name.running, Int64(try positive(count)))
        admission.limit = count
        pump()
    }

    func setMaximumRunningPerHost(_ count: Int) async throws(TowlineError) {
        try await keep(Name.perHost, Int64(try positive(count)))
        admission.hostLimit = count
        pump()
    }

    func setRateLimit(_ rate: Int64) async throws(TowlineError) {
        guard rate >= 0 else {
            throw TowlineError(
                .unusableOption, "invalid rate limit \(rate): expected bytes per second, or 0 for no limit")
        }
        try await keep(Name.rate, rate)
        services.limiter.setRate(rate)
    }

    /// Sets the maximum number of running downloads of a group, and stores it in the registry.
    ///
    /// - Parameter count: the maximum number; `nil` means no limit, and 0 lets no download of the group start.
    func setLimit(_ count: Int?, forGroup group: String) async throws(TowlineError) {
        if let count, count < 0 {
            throw TowlineError(.unusableOption, "invalid limit \(count) for a group of downloads: expected 0 or more")
        }
        try await keep(Name.group + group, count.map { Int64($0) })
        admission.groupLimits[group] = count
        pump()
    }

    private func positive(_ count: Int) throws(TowlineError) -> Int {
        guard count > 0 else {
            throw TowlineError(.unusableOption, "invalid limit of running downloads \(count): expected 1 or more")
        }
        return count
    }

    private func keep(_ name: String, _ number: Int64?) async throws(TowlineError) {
        try checkOpen()
        try await registry.setValue(number.map(String.init), for: name)
    }
}
