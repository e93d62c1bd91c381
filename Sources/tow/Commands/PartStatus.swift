import TowlineCore
import TowlineEngine

/// The state of an unfinished download, for display.
struct PartStatus {
    /// The final path of the download.
    var path: String
    var record: DownloadRecord
    /// The byte ranges that the next run can use. After a reboot, these are the durable ranges.
    var written: ByteRangeSet
    var durable: ByteRangeSet
    /// The process ID of the process that is downloading the file, or `nil`.
    var lockedBy: Int32?

    // MARK: For people

    /// Returns a few lines, each with a label and a value.
    func text(style: TerminalStyle) -> String {
        var lines = [style.paint(TerminalSafeText.make(path), .strong)]
        lines += FactSheet(facts).lines
        if let length = record.representation.completeLength, length > 0 {
            lines.append("  \(map(length: length, style: style))")
        }
        return lines.joined(separator: "\n") + "\n"
    }

    private var facts: [(String, String?)] {
        let length = record.representation.completeLength
        return [
            ("URL", record.source),
            ("redirected to", record.resolved == record.source ? nil : record.resolved),
            ("size", length.map(Self.size) ?? "unknown"),
            ("downloaded", there(length)),
            ("synced to disk", "\(ByteCountText.format(durable.count)) (kept even after a power failure)"),
            ("missing", length.map(missing)),
            ("version", validator),
            ("checksum", record.checksums.first?.description),
            ("running", lockedBy.map { "yes, by process \($0)" } ?? "no. \(prospect)"),
        ]
    }

    /// The expected effect of another run.
    private var prospect: String {
        if record.lacksRanges {
            return "The next run restarts from the beginning because the server does not support range requests"
        }
        return goesOn
            ? "Run the same command again to resume"
            : """
            The next run restarts from the beginning because the server sends neither an ETag nor a Last-Modified \
            date. To resume, add --checksum or --unsafe-resume
            """
    }

    private var goesOn: Bool {
        !record.lacksRanges && (record.representation.validator != .none || !record.checksums.isEmpty)
    }

    /// Formats a length with a unit and in bytes.
    static func size(_ length: Int64) -> String { "\(ByteCountText.format(length)) (\(length) bytes)" }

    private func there(_ length: Int64?) -> String {
        let percent = length.map { $0 == 0 ? 1 : Double(written.count) / Double($0) }.map { ", \(Phrases.percent($0))" }
        return ByteCountText.format(written.count) + (percent ?? "")
    }

    private func missing(_ length: Int64) -> String {
        let gaps = written.gaps(in: ByteRange(0, length))
        return
            "\(ByteCountText.format(length - written.count)) in \(gaps.count) \(gaps.count == 1 ? "gap" : "gaps")"
    }

    private var validator: String {
        if let tag = record.representation.entityTag {
            return "ETag \(tag.fieldValue)" + (tag.isStrong ? "" : " (weak)")
        }
        return record.representation.lastModified.map { "Last-Modified \($0.fieldValue)" }
            ?? "not recorded, because the server sends neither an ETag nor a Last-Modified date"
    }

    /// Returns a map of the file as one line of `width` cells: full, partly held, or empty.
    func map(length: Int64, style: TerminalStyle, width: Int64 = 64) -> String {
        let (full, begun, empty) = style.unicode ? ("█", "▒", "·") : ("#", "+", ".")
        let cells = (0..<width).map { cell in
            let range = ByteRange(Self.edge(cell, of: length, width), Self.edge(cell + 1, of: length, width))
            let count = written.intersection(range).count
            return count == range.count ? full : count > 0 ? begun : empty
        }
        return cells.joined()
    }

    /// Returns the offset at which a cell begins. Avoids `length * cell`, which could overflow.
    private static func edge(_ cell: Int64, of length: Int64, _ width: Int64) -> Int64 {
        length / width * cell + length % width * cell / width
    }

    // MARK: For programs

    /// The state as a JSON object.
    var json: JSONObject {
        var object = JSONObject()
        object.add("path", path)
        object.add("state", "unfinished")
        object.add("goesOn", goesOn)
        object.add("source", record.source)
        object.add("resolved", record.resolved)
        object.add("completeLength", record.representation.completeLength)
        object.add("heldBytes", written.count)
        object.add("written", ranges: written.ranges.map { ($0.lowerBound, $0.upperBound) })
        object.add("durable", ranges: durable.ranges.map { ($0.lowerBound, $0.upperBound) })
        object.add("entityTag", record.representation.entityTag?.fieldValue)
        object.add("lastModified", record.representation.lastModified?.fieldValue)
        object.add("checksums", record.checksums.map(\.description))
        object.add("generation", record.generation)
        object.add("lockedBy", lockedBy)
        return object
    }
}

/// Lines of labels and values, with the values aligned.
struct FactSheet {
    private let facts: [(label: String, value: String)]

    /// Creates a sheet. Facts without a value are left out.
    init(_ facts: [(String, String?)]) {
        self.facts = facts.compactMap { label, value in value.map { (label, $0) } }
    }

    /// Returns one line per fact. Values are made safe to print.
    var lines: [String] {
        let width = facts.map(\.label.count).max() ?? 0
        return facts.map { label, value in
            "  \(ProgressLine.padded(label, width))  \(TerminalSafeText.make(value))"
        }
    }
}

extension TerminalStyle {
    /// Returns the style for text on a descriptor: colors only on a terminal.
    static func forOutput(_ descriptor: Int32) -> TerminalStyle {
        var style = TerminalStyle(
            environment: Environment.variables(["LC_ALL", "LC_CTYPE", "LANG", "TERM", "NO_COLOR"]))
        if !TerminalWindow.isTerminal(descriptor) { style.color = false }
        return style
    }
}
