import TowlineCore
import TowlineEngine

/// The downloads that wait for the network, the server or disk space before they enter the queue again.
struct RetryWaits {
    /// The wait of one download before its next transfer: the reason, and the time when it enters the queue again.
    struct Wait: Hashable {
        var code: WaitCode
        /// The monotonic time when the download enters the queue again.
        var until: Duration
    }

    /// The maximum delay before a retry after network failures.
    private static let longestDelay = Duration.seconds(300)

    /// The clock of the waits.
    let clock: any DownloadClock
    private var waits: [DownloadID: Wait] = [:]
    /// The number of consecutive waits of each download, which lengthens its next wait, and the reason of the last
    /// wait. A received byte resets both.
    private var counts: [DownloadID: (number: Int, code: WaitCode)] = [:]
    /// The task that waits for the end of the earliest wait and then queues the downloads whose waits are over.
    private var timer: Task<Void, Never>?

    /// Creates an empty list of waits.
    init(clock: any DownloadClock = SystemClock()) { self.clock = clock }

    /// Returns the delay before the next retry of a download, and counts the wait. The delay doubles after
    /// each further network failure.
    mutating func nextDelay(_ id: DownloadID, _ code: WaitCode, _ configuration: Downloader.Configuration) -> Duration {
        let count = count(of: id)
        counts[id] = (count + 1, code)
        if code == .diskSpace { return configuration.diskRetryInterval }
        let first = code.isLocal ? configuration.diskRetryInterval : configuration.networkRetryInterval
        return min(Self.longestDelay, first * (1 << min(count, 20)))
    }

    /// Returns the number of consecutive waits of a download, which lengthens its next wait.
    func count(of id: DownloadID) -> Int { counts[id]?.number ?? 0 }

    /// Returns the wait that a download continues to show while it is retried; `nil` if it did not wait for the network
    /// or the server.
    func outage(of id: DownloadID) -> DownloadState.WaitReason? {
        guard let code = counts[id]?.code, !code.isLocal else { return nil }
        return code.reason
    }

    /// Resets the number of consecutive waits of a download, so that its next wait is short again.
    mutating func resetCount(of id: DownloadID) { counts[id] = nil }

    func contains(_ id: DownloadID) -> Bool { waits[id] != nil }

    mutating func add(_ id: DownloadID, _ wait: Wait) { waits[id] = wait }

    func matching(_ isOver: (Wait) -> Bool) -> [DownloadID: Wait] { waits.filter { isOver($0.value) } }

    /// Postpones the end of a download's wait to the time `until`. Has no effect if the download does not wait.
    mutating func postpone(_ id: DownloadID, until time: Duration) { waits[id]?.until = time }

    /// Removes the waits of downloads that enter the queue again and so wait no longer.
    mutating func remove(_ ids: some Sequence<DownloadID>) { for id in ids { waits[id] = nil } }

    /// Adds waits again that `remove` removed, because the registry could not be written. They now end at the time
    /// `until`. A wait that began meanwhile is not replaced.
    mutating func restore(_ removed: [DownloadID: Wait], until time: Duration) {
        for (id, wait) in removed where waits[id] == nil { waits[id] = Wait(code: wait.code, until: time) }
    }

    /// Starts the timer that calls `body` at the end of the earliest wait. Replaces an earlier timer.
    mutating func startTimer(_ body: @escaping @Sendable () async -> Void) {
        stopTimer()
        guard let first = waits.values.map(\.until).min() else { return }
        timer = Task { [clock] in
            do { try await clock.sleep(until: first) } catch { return }
            await body()
        }
    }

    mutating func stopTimer() { timer?.cancel() }
}
