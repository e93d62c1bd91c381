import Glibc
import TowlineCore
import TowlineWire

/// Text about downloads of the service.
struct DownloadLines {
    let style: TerminalStyle

    /// Returns the end of an ID, which distinguishes downloads.
    static func short(_ id: String) -> String { String(id.suffix(ShortDownloadID.shownLength)) }

    func table(_ downloads: [Wire.Download]) -> String {
        let width = downloads.map(\.state.rawValue.count).reduce(11) { max($0, $1) }
        return downloads.map { row($0, stateWidth: width) + "\n" }.joined()
    }

    private func row(_ download: Wire.Download, stateWidth: Int) -> String {
        let percent = Self.fraction(download).map { Phrases.percent($0) } ?? ""
        let cells = [
            Self.short(download.id), Self.padded(download.state.rawValue, stateWidth), Self.right(percent, 4),
            Self.right(Self.sizes(download), 20), Self.right(download.rate.map { Phrases.rate(Double($0)) } ?? "", 11),
        ]
        // `tow show` shows the complete reason.
        let why = Self.shortReason(download).map { "  (" + TerminalSafeText.make($0) + ")" } ?? ""
        return paint(cells.joined(separator: "  "), download) + "  " + Self.name(download) + why
    }

    /// Returns the first sentence of the reason why a download or its follow-up failed, or why it waits or is queued,
    /// without the URL or the path, which the row shows, and without the details of the transport. `nil` without a reason.
    static func shortReason(_ download: Wire.Download) -> String? {
        let isExplained = [.waiting, .queued, .followUpFailed].contains(download.state)
        guard let reason = download.error?.message ?? (isExplained ? download.reason : nil) else { return nil }
        var text = reason[...]
        if text.hasPrefix("http://") || text.hasPrefix("https://"), let end = text.firstRange(of: ": ") {
            text = text[end.upperBound...]
        }
        let file = path(download) + ": "
        if text.hasPrefix(file) { text = text.dropFirst(file.count) }
        // The words in parentheses are a message of the transport.
        let isOfTransport = download.error.map { $0.networkFailure != nil } ?? (download.state == .waiting)
        if isOfTransport, let detail = text.firstRange(of: " (") { text = text[..<detail.lowerBound] }
        if let end = text.firstRange(of: ". ") { text = text[..<end.lowerBound] }
        return String(text)
    }

    private func paint(_ text: String, _ download: Wire.Download) -> String {
        switch download.state {
        case .failed, .followUpFailed: style.paint(text, .bad)
        case .finished: style.paint(text, .good)
        case .paused, .cancelled, .queued: style.paint(text, .quiet)
        default: text
        }
    }

    func details(_ download: Wire.Download) -> String {
        var lines = [("id", download.id), ("url", download.url)]
        lines += (download.mirrors ?? []).map { ("mirror", $0) }
        lines.append(("file", Self.path(download)))
        lines.append(("state", download.state.rawValue))
        if let error = download.error {
            lines.append(("error", error.message))
        } else {
            lines += download.reason.map { [("reason", $0)] } ?? []
        }
        lines.append(("size", Self.sizes(download)))
        if let rate = download.rate { lines.append(("rate", Phrases.rate(Double(rate)))) }
        if let remaining = download.remaining { lines.append(("remaining", DurationText.format(.seconds(remaining)))) }
        if let limit = download.rateLimit { lines.append(("limit", Phrases.rate(Double(limit)))) }
        if download.connections > 0 { lines.append(("connections", String(download.connections))) }
        if download.priority != 0 { lines.append(("priority", String(download.priority))) }
        if let group = download.group { lines.append(("group", group)) }
        for (key, value) in download.metadata.sorted(by: { $0.key < $1.key }) { lines.append((key, value)) }
        if let followUp = download.followUp, followUp.state != .none {
            lines.append(("follow-up", followUp.state.rawValue + (followUp.reason.map { ": " + $0 } ?? "")))
        }
        return lines.map { name, value in
            style.paint(Self.padded(TerminalSafeText.make(name), 12), .quiet) + " " + TerminalSafeText.make(value)
                + "\n"
        }.joined()
    }

    /// Returns the history of a download, one line per event.
    func timeline(_ notes: [Wire.Note]) -> String {
        notes.map { note in
            let time = style.paint(Self.localTime(note.time / 1000), .quiet)
            return "  " + time + "  " + TerminalSafeText.make(note.message) + "\n"
        }.joined()
    }

    private static func localTime(_ seconds: Int64) -> String {
        var time = time_t(seconds)
        var fields = tm()
        var text = [CChar](repeating: 0, count: 32)
        guard localtime_r(&time, &fields) != nil,
            strftime(&text, text.count, "%Y-%m-%d %H:%M:%S", &fields) > 0
        else { return String(seconds) }
        return String(decoding: text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    // MARK: Cells

    static func fraction(_ download: Wire.Download) -> Double? {
        if download.state.isComplete { return 1 }
        guard let length = download.completeLength, length > 0 else { return nil }
        return min(1, Double(download.heldBytes) / Double(length))
    }

    static func sizes(_ download: Wire.Download) -> String {
        let held = ByteCountText.format(download.heldBytes)
        guard let length = download.completeLength, !download.state.isComplete else { return held }
        return "\(held) of \(ByteCountText.format(length))"
    }

    /// Returns the name of a download, or its URL until the name is known. Safe to print.
    static func name(_ download: Wire.Download) -> String {
        TerminalSafeText.make(download.name ?? download.url)
    }

    static func path(_ download: Wire.Download) -> String {
        download.name.map { download.directory + "/" + $0 } ?? "\(download.directory) (file name not known yet)"
    }

    static func padded(_ text: String, _ width: Int) -> String {
        text + String(repeating: " ", count: max(0, width - text.count))
    }

    static func right(_ text: String, _ width: Int) -> String {
        String(repeating: " ", count: max(0, width - text.count)) + text
    }
}
