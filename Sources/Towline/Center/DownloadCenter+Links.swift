import Foundation
import TowlineCore
import TowlineEngine

/// The renewal of links with `Configuration.linkRenewal`: after the server refused a link, and before a known expiry
/// time.
extension DownloadCenter {
    /// The time before the expiry of a link at which the link is renewed, in seconds.
    private static let margin: TimeInterval = 30
    /// The status codes that mean that a link has expired, if the link worked before.
    private static let expired: Set<Int> = [401, 403, 404, 410]
    /// The maximum number of consecutive renewals of a download's link without a received byte. Then the download
    /// fails.
    private static let maximumInRow = 3

    /// Requests a new link if `error` indicates an expired link. Returns `true` if the download can continue with the
    /// new link, and `false` if the error stands.
    func renew(_ download: LiveDownload, after error: TowlineError) async -> Bool {
        guard let status = error.status, Self.expired.contains(status), configuration.linkRenewal != nil else {
            return false
        }
        let progress = download.progress
        // A link that never worked has not expired.
        guard progress.held > 0 else { return false }
        if progress.received > 0 { renewalsInRow[download.id] = nil }
        let count = renewalsInRow[download.id, default: 0]
        guard count < Self.maximumInRow else { return false }
        renewalsInRow[download.id] = count + 1
        return await renew(download, .refused(status: status))
    }

    /// Renews a link that expires within `margin`. If the renewal fails, the download continues with the old link.
    func renewIfExpiring(_ download: LiveDownload) async throws(TowlineError) {
        guard configuration.linkRenewal != nil, let end = LinkExpiry.secondsSince1970(try download.request.source)
        else { return }
        let date = Date(timeIntervalSince1970: Double(end))
        guard date.timeIntervalSinceNow < Self.margin else { return }
        _ = await renew(download, .expires(date))
    }

    /// Returns the time until the link must be renewed. Returns `nil` if the link has no known expiry time, the app
    /// renews no links, or the time has passed.
    func renewalTime(_ download: LiveDownload) throws(TowlineError) -> Duration? {
        guard configuration.linkRenewal != nil, let end = LinkExpiry.secondsSince1970(try download.request.source)
        else {
            return nil
        }
        let left = Date(timeIntervalSince1970: Double(end)).timeIntervalSinceNow - Self.margin
        // The renewal of an expired link failed. The server decides whether the link still works.
        return left > 0 ? .milliseconds(Int64(min(left, 1e9) * 1000)) : nil
    }

    /// Returns a task that restarts the transfer after `time`, so that its link is renewed before it expires. The
    /// downloaded bytes are kept. Cancelling the task prevents the restart.
    func endBefore(_ time: Duration, _ download: LiveDownload) -> Task<Void, Never> {
        let id = download.id
        return Task { [weak self, weak download] in
            do { try await Task.sleep(for: time) } catch { return }
            guard let self, let download, await self.live[id] === download else { return }
            download.end(.restart)
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

    private func renew(_ download: LiveDownload, _ reason: LinkRenewalReason) async -> Bool {
        guard let renewal = configuration.linkRenewal else { return false }
        let link: RenewedLink?
        do {
            guard let answer = await self.answer(of: renewal, download, reason) else { return false }
            link = try answer.get()
        } catch {
            download.noticed(
                TransferNotice(
                    .warning, .retrying,
                    "the link has expired, and the request for a new link failed. Set a new URL for the download"))
            return false
        }
        guard let link else { return false }
        await requestLocks.acquire(download.id)
        defer { requestLocks.release(download.id) }
        do throws(TowlineError) {
            // Uses the current request, which may have changed while the app was asked for the link.
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
            return true
        } catch {
            let reason =
                "the link has expired, and the new link cannot be used (\(error.message)). "
                + "Set a new URL for the download"
            download.noticed(TransferNotice(.warning, .retrying, reason))
            return false
        }
    }
}
