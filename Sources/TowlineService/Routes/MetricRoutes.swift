internal import Foundation
import HTTPTypes
import Hummingbird
internal import Towline

/// Metrics for Prometheus (text format 0.0.4).
struct MetricRoutes: Sendable {
    static let path = "/metrics"

    let downloader: Downloader
    let feed: EventFeed
    private let start = Date()

    func add(to table: inout RouteTable) {
        table.add(.get, Self.path) { _, _ in
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
        page.family("towline_build_info", "gauge", "Version of towd.", ["{version=\"\(TowlineVersion.text)\"}": 1])
        var counts: [String: Double] = [:]
        for (state, count) in totals.shownCounts(running) { counts["{state=\"\(state)\"}"] = Double(count) }
        page.family("towline_downloads", "gauge", "Number of downloads in the list, by state.", counts)
        page.family(
            "towline_held_bytes", "gauge", "Bytes downloaded so far, of all downloads in the list.",
            ["": Double(totals.heldBytes)])
        page.family(
            "towline_complete_bytes", "gauge", "Sum of the file sizes in bytes, of all downloads with a known size.",
            ["": Double(totals.completeLength)])
        page.family("towline_running", "gauge", "Number of active downloads.", ["": Double(running.count)])
        let connections = running.reduce(0) { $0 + $1.connections }
        page.family("towline_connections", "gauge", "Number of connections in use.", ["": Double(connections)])
        let rate = running.reduce(0) { $0 + ($1.rate ?? 0) }
        page.family("towline_rate_bytes_per_second", "gauge", "Total download rate in bytes per second.", ["": rate])
        page.family(
            "towline_event_clients", "gauge", "Number of clients of the event stream.", ["": Double(await feed.clients)]
        )
        page.family(
            "process_start_time_seconds", "gauge", "Start time of the process, in seconds since 1970.",
            ["": start.timeIntervalSince1970.rounded()])
        if let memory = Self.residentBytes() {
            page.family("process_resident_memory_bytes", "gauge", "Resident memory in bytes.", ["": memory])
        }
        return page.text
    }

    /// Resident memory, from the second field of `/proc/self/statm`, which counts pages.
    private static func residentBytes() -> Double? {
        guard let text = try? String(contentsOfFile: "/proc/self/statm", encoding: .utf8) else { return nil }
        let fields = text.split(separator: " ")
        return fields.count > 1 ? Double(fields[1]).map { $0 * Double(sysconf(Int32(_SC_PAGESIZE))) } : nil
    }
}

/// Metric families in the text format.
private struct MetricPage {
    private(set) var text = ""

    /// Adds a family; `values` maps labels to values.
    mutating func family(_ name: String, _ kind: String, _ help: String, _ values: [String: Double]) {
        text += "# HELP \(name) \(help)\n# TYPE \(name) \(kind)\n"
        for (labels, value) in values.sorted(by: { $0.key < $1.key }) {
            let number = value.rounded() == value && abs(value) < 9e15 ? String(Int64(value)) : String(value)
            text += "\(name)\(labels) \(number)\n"
        }
    }
}
