internal import Foundation
import HTTPTypes
import Hummingbird
internal import Towline
import TowlineWire

/// Routes for the service as a whole: health, totals, settings and hosts.
struct StatusRoutes: Sendable {
    let downloader: Downloader
    let roots: DownloadRoots
    let feed: EventFeed
    let pages: @Sendable () -> [String]

    func add(to table: inout RouteTable) {
        table.add(.get, Wire.base + "/health") { _, _ in
            try Answer.json(Wire.Health(version: TowlineVersion.text))
        }
        table.add(.get, Wire.base + "/totals") { _, _ in try Answer.json(try await downloader.wireTotals) }
        table.add(.get, Wire.base + "/settings") { _, _ in try await settings() }
        table.add(.patch, Wire.base + "/settings") { request, _ in
            try await apply(try await Answer.read(Wire.SettingsChange.self, from: request))
            await feed.settingsChanged()
            return try await settings()
        }
        table.add(.get, Wire.base + "/hosts") { _, _ in
            let hosts = try await downloader.hosts.map {
                Wire.Host(
                    host: $0.host, running: $0.running, ceiling: $0.ceiling, notBefore: $0.notBefore?.milliseconds)
            }
            return try Answer.json(Wire.Hosts(hosts: hosts))
        }
    }

    private func settings() async throws -> Response {
        let limits = try await downloader.limits
        return try Answer.json(
            Wire.Settings(
                maximumRunning: limits.maximumRunning, maximumRunningPerHost: limits.maximumRunningPerHost,
                rateLimit: limits.rateLimit, groups: limits.groups, downloadsDirectory: roots.standard,
                pages: pages(), version: TowlineVersion.text))
    }

    private func apply(_ change: Wire.SettingsChange) async throws {
        for group in (change.groups ?? [:]).keys { _ = try DownloadRequest.group(group) }
        if let count = change.maximumRunning { try await downloader.setMaximumRunning(count) }
        if let count = change.maximumRunningPerHost { try await downloader.setMaximumRunningPerHost(count) }
        switch change.rateLimit {
        case .keep: break
        case .clear: try await downloader.setRateLimit(0)
        case .set(let rate): try await downloader.setRateLimit(rate)
        }
        for (group, limit) in change.groups ?? [:] { try await downloader.setLimit(limit, forGroup: group) }
    }
}
