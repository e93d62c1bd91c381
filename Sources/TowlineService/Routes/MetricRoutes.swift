internal import Foundation
import HTTPTypes
import Hummingbird
internal import Towline

/// Figures for Prometheus (text format 0.0.4).
struct MetricRoutes: Sendable {
    let downloader: Downloader
    let feed: EventFeed
    private let start = Date()

    init(downloader: Downloader, feed: EventFeed) {
        self.downloader = downloader
        self.feed = feed
    }

    func add(to table: inout RouteTable) {
        table.add(.get, "/metrics") { _, _ in
            Response(
                status: .ok,
                headers: [.contentType: "text/plain; version=0.0.4; charset=utf-8", .cacheControl: "no-store"],
                body: ResponseBody(byteBuffer: ByteBuffer(string: try await text())))
        }
    }

    private func text() async throws -> String {
        let totals = try await downloader.totals
        let running = try await downloader.running
        var page = MetricPage()
        page.family("towline_build_info", "gauge", "The version.", ["{version=\"\(TowlineVersion.text)\"}": 1])
        var counts: [String: Double] = [:]
        for (state, count) in totals.counts { counts["{state=\"\(state.rawValue)\"}"] = Double(count) }
        page.family("towline_downloads", "gauge", "Downloads in the list.", counts)
        page.family("towline_held_bytes", "gauge", "Bytes that are there.", ["": Double(totals.heldBytes)])
        page.family(
            "towline_complete_bytes", "gauge", "Bytes in all, of downloads whose length is known.",
            ["": Double(totals.completeLength)])
        page.family("towline_running", "gauge", "Downloads that run.", ["": Double(running.count)])
        let connections = running.reduce(0) { $0 + $1.connections }
        page.family("towline_connections", "gauge", "Connections in use.", ["": Double(connections)])
        let rate = running.reduce(0) { $0 + ($1.rate ?? 0) }
        page.family("towline_rate_bytes_per_second", "gauge", "Bytes that arrive in a second.", ["": rate])
        page.family("towline_event_clients", "gauge", "Clients that listen.", ["": Double(await feed.clients)])
        page.family(
            "process_start_time_seconds", "gauge", "When it began.", ["": start.timeIntervalSince1970.rounded()])
        if let memory = Self.residentBytes() {
            page.family("process_resident_memory_bytes", "gauge", "Memory in use.", ["": memory])
        }
        return page.text
    }

    /// The second field of `/proc/self/statm`, in pages.
    private static func residentBytes() -> Double? {
        guard let text = try? String(contentsOfFile: "/proc/self/statm", encoding: .utf8) else { return nil }
        let fields = text.split(separator: " ")
        return fields.count > 1 ? Double(fields[1]).map { $0 * Double(sysconf(Int32(_SC_PAGESIZE))) } : nil
    }
}

/// Families of figures, as text.
private struct MetricPage {
    private(set) var text = ""

    /// Values by their labels.
    mutating func family(_ name: String, _ kind: String, _ help: String, _ values: [String: Double]) {
        text += "# HELP \(name) \(help)\n# TYPE \(name) \(kind)\n"
        for (labels, value) in values.sorted(by: { $0.key < $1.key }) {
            let number = value.rounded() == value && abs(value) < 9e15 ? String(Int64(value)) : String(value)
            text += "\(name)\(labels) \(number)\n"
        }
    }
}
