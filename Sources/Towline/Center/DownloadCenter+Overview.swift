import Foundation
import TowlineCore
import TowlineEngine

/// Queries about the limits, the running downloads, their hosts and the segments of a download.
extension DownloadCenter {
    func limits() throws(TowlineError) -> DownloadLimits {
        try checkOpen()
        return DownloadLimits(
            maximumRunning: admission.limit, maximumRunningPerHost: admission.hostLimit,
            rateLimit: services.limiter.rate, groups: admission.groupLimits)
    }

    /// Changes a limit and stores it in the registry. Throws `unusableOption` if the limit is outside its range.
    func set(_ limit: StoredLimit) async throws(TowlineError) {
        try limit.check()
        try checkOpen()
        try await registry.setValue(limit.value, for: limit.name)
        apply(limit)
        pump()
    }

    /// Changes a limit without storing it.
    func apply(_ limit: StoredLimit) {
        admission.set(limit)
        if case .rate(let rate) = limit { services.limiter.setRate(rate) }
    }

    /// Loads the limits that an earlier process stored in the registry.
    func recallLimits() async throws(TowlineError) {
        for (name, value) in try await registry.values(prefix: StoredLimit.prefix) {
            if let limit = StoredLimit(name: name, value: value) { apply(limit) }
        }
    }

    func runningSnapshots() throws(TowlineError) -> [DownloadSnapshot] {
        try checkOpen()
        return running.all.map(\.snapshot).sorted { $0.id < $1.id }
    }

    func hosts() throws(TowlineError) -> [HostStatus] {
        try checkOpen()
        let counts = running.all.reduce(into: [:]) { $0[$1.share.host, default: 0] += 1 }
        return counts.sorted { $0.key < $1.key }.map { host, count in
            let origin = (try? HTTPURL(parsing: host))?.origin
            let wait = origin.flatMap { services.board.wait(of: $0) }
            return HostStatus(
                host: host, running: count, ceiling: origin.flatMap { services.board.ceiling($0) },
                notBefore: wait.map { Date(timeIntervalSinceNow: $0 / .seconds(1)) })
        }
    }

    /// Returns the segments of a download: from its transfer if it runs, otherwise from its journal.
    /// For a finished download, the result is the complete file.
    func segments(_ id: DownloadID) async throws(TowlineError) -> DownloadSegments {
        try checkOpen()
        if let runner = running[id]?.runner { return DownloadSegments(await runner.segmentMap) }
        guard let record = try await registry.download(id) else {
            throw Self.notFound
        }
        let length = record.completeLength
        if record.state == .finished, let length {
            return DownloadSegments(SegmentMap(completeLength: length, written: ByteRangeSet([ByteRange(0, length)])))
        }
        let held = await files.held([record])[0]
        return DownloadSegments(SegmentMap(completeLength: length, written: held?.written ?? ByteRangeSet()))
    }

    func find(_ short: String) async throws(TowlineError) -> DownloadID? {
        try checkOpen()
        guard let name = ShortDownloadID(short) else { return nil }
        let found = try await registry.names(matching: name, limit: 2)
        guard found.count < 2 else {
            throw TowlineError(
                .unusableOption, "the ID \(short) matches more than one download. Give more characters of the ID")
        }
        return found.first
    }
}
