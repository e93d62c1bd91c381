import Foundation
import Synchronization
import TowlineCore
import TowlineEngine

/// Replaces expired links of downloads with new ones from the app (`Configuration.linkRenewal`): after the server
/// refused a link, and before a known expiry time.
final class LinkRenewer: Sendable {
    /// The number of seconds before the expiry of a link when the link is renewed.
    private static let margin: TimeInterval = 30

    private let renewal: (any LinkRenewal)?
    private let registry: any Registry
    /// The locks with which changes of requests exclude each other.
    let locks: RequestLocks
    private let clock: any DownloadClock
    private let counts = Mutex(RenewalCounts())

    /// Creates the renewer of the links of all downloads.
    ///
    /// - Parameters:
    ///   - renewal: the object of the app that supplies new links; `nil` if no link is renewed.
    ///   - locks: the locks that other changes of requests use.
    init(_ renewal: (any LinkRenewal)?, registry: any Registry, locks: RequestLocks, clock: any DownloadClock) {
        (self.renewal, self.registry, self.locks, self.clock) = (renewal, registry, locks, clock)
    }

    /// Requests a new link if `error` indicates an expired link. Returns `true` if the download can continue with the
    /// new link, and `false` if the download ends with the error.
    func renew(_ download: LiveDownload, after error: TowlineError) async -> Bool {
        guard let renewal, let status = error.status,
            counts.withLock({ $0.permits(download.id, status: status, download.progress) })
        else { return false }
        return await renew(download, renewal, .refused(status: status))
    }

    /// Renews a link that expires within `margin`. If the renewal fails, the download continues with the old link.
    func renewIfExpiring(_ download: LiveDownload) async throws(TowlineError) {
        guard let renewal, let end = LinkExpiry.secondsSince1970(try download.request.source) else { return }
        let date = Date(timeIntervalSince1970: Double(end))
        guard date.timeIntervalSince(clock.date) < Self.margin else { return }
        _ = await renew(download, renewal, .expires(date))
    }

    /// Returns a task that restarts a transfer in time before its link expires, so that the link is renewed. The
    /// downloaded bytes are kept. Cancelling the task prevents the restart.
    ///
    /// - Returns: `nil` if the link has no known expiry time, the app renews no links, or the time has passed.
    func restartBeforeExpiry(_ download: LiveDownload) throws(TowlineError) -> Task<Void, Never>? {
        guard renewal != nil, let end = LinkExpiry.secondsSince1970(try download.request.source) else { return nil }
        let left = Date(timeIntervalSince1970: Double(end)).timeIntervalSince(clock.date) - Self.margin
        // The renewal of an expired link failed. The server decides whether the link still works.
        guard left > 0 else { return nil }
        let time = Duration.milliseconds(Int64(min(left, 1e9) * 1000))
        return Task { [clock, weak download] in
            do { try await clock.sleep(for: time) } catch { return }
            if !Task.isCancelled { download?.end(.restart) }
        }
    }

    /// Resets the number of consecutive link renewals of a removed download.
    func forget(_ id: DownloadID) { counts.withLock { $0.reset(id) } }

    private func renew(
        _ download: LiveDownload, _ renewal: any LinkRenewal, _ reason: LinkRenewalReason
    ) async -> Bool {
        let link: RenewedLink?
        do {
            guard let answer = await answer(of: renewal, download, reason) else { return false }
            link = try answer.get()
        } catch {
            download.noticed(
                TransferNotice(
                    .warning, .retrying,
                    "the link has expired, and the request for a new link failed. Set a new URL for the download"))
            return false
        }
        guard let link else { return false }
        await locks.acquire(download.id)
        defer { locks.release(download.id) }
        do throws(TowlineError) {
            // Uses the current request, which may have changed while the app was asked for the link.
            try await store(link, for: download)
            return true
        } catch {
            let reason =
                "the link has expired, and the new link cannot be used (\(error.message)). "
                + "Set a new URL for the download"
            download.noticed(TransferNotice(.warning, .retrying, reason))
            return false
        }
    }

    /// Requests a new link from the app and returns its answer or its error.
    ///
    /// - Returns: `nil` if a command, such as pause, ended the transfer first. The app may answer late, or give that
    ///   command itself.
    private func answer(
        of renewal: any LinkRenewal, _ download: LiveDownload, _ reason: LinkRenewalReason
    ) async -> Result<RenewedLink?, any Error>? {
        let (answers, continuation) = AsyncStream<Result<RenewedLink?, any Error>>.makeStream()
        let request = download.request
        let asking = Task {
            do {
                continuation.yield(.success(try await renewal.renewedLink(for: request, reason: reason)))
            } catch {
                continuation.yield(.failure(error))
            }
        }
        download.whenEnding {
            asking.cancel()
            continuation.finish()
        }
        defer { download.whenEnding(nil) }
        for await answer in answers { return answer }
        return nil
    }

    /// Writes a new link to the registry and to the running download. Throws an error if the link cannot be used.
    private func store(_ link: RenewedLink, for download: LiveDownload) async throws(TowlineError) {
        var renewed = download.request
        renewed.follow(link)
        _ = try renewed.options(known: nil)
        var change = RegistryChange(download.id)
        change.options = try StoredRequest.encode(renewed)
        change.source = renewed.url.absoluteString
        change.host = try renewed.source.origin.description
        try await registry.apply([change])
        let stored = renewed
        download.update { record, request in
            request = stored
            record.source = stored.url.absoluteString
        }
    }
}

/// The numbers of consecutive renewals of the links of downloads, and the decision whether a refused link is renewed
/// once more.
struct RenewalCounts {
    /// The status codes of a response that mean that a link has expired, if bytes of the file were downloaded before.
    private static let expired: Set<Int> = [401, 403, 404, 410]
    /// The maximum number of consecutive renewals of a download's link without a received byte. Then the download
    /// fails.
    static let maximum = 3

    private var counts: [DownloadID: Int] = [:]

    /// Returns whether the link of a download is renewed after a response with the status code `status`, and counts the
    /// renewal.
    ///
    /// - Parameter progress: the number of downloaded bytes, and the number of bytes received in the last transfer.
    mutating func permits(_ id: DownloadID, status: Int, _ progress: (held: Int64, received: Int64)) -> Bool {
        // A link that never worked has not expired.
        guard Self.expired.contains(status), progress.held > 0 else { return false }
        if progress.received > 0 { reset(id) }
        let count = counts[id, default: 0]
        guard count < Self.maximum else { return false }
        counts[id] = count + 1
        return true
    }

    /// Resets the number of consecutive renewals of a download's link, because bytes arrived or the download was
    /// removed.
    mutating func reset(_ id: DownloadID) { counts[id] = nil }
}
