import TowlineCore

/// The state of a path, for display.
enum PlaceStatus {
    /// An unfinished download, which resumes or restarts with the next run.
    case unfinished(PartStatus)
    /// A part file without a journal.
    case unclaimed(path: String, partLength: Int64, lockedBy: Int32?)
    /// A complete download.
    case finished(path: String, length: Int64)
    /// A file without a record of a download.
    case ordinary(path: String, length: Int64)

    /// 1 if there is no record of a download at the path, else 0.
    var exitStatus: ExitStatus {
        if case .ordinary = self { return .failed }
        return .success
    }

    /// Returns a few lines, each with a label and a value.
    func text(style: TerminalStyle) -> String {
        switch self {
        case .unfinished(let status): status.text(style: style)
        case .unclaimed(let path, let length, let owner):
            sheet(
                path, style,
                [
                    (
                        "state",
                        "unfinished, without a .tow-journal file (normal for files under 1 MiB). "
                            + "The next 'tow get' for this file restarts from the beginning"
                    ),
                    ("downloaded", ByteCountText.format(length)),
                    ("running", owner.map { "yes, by process \($0)" } ?? "no. Run 'tow get' again to restart it"),
                ])
        case .finished(let path, let length):
            sheet(path, style, [("state", "finished: the file is complete"), ("size", PartStatus.size(length))])
        case .ordinary(let path, let length):
            sheet(
                path, style,
                [
                    ("state", "not a known download: the file exists, but tow has no record of downloading it"),
                    ("size", PartStatus.size(length)),
                ])
        }
    }

    private func sheet(_ path: String, _ style: TerminalStyle, _ facts: [(String, String?)]) -> String {
        ([style.paint(TerminalSafeText.make(path), .strong)] + FactSheet(facts).lines).joined(separator: "\n") + "\n"
    }

    /// The state as a JSON object.
    var json: JSONObject {
        var object = JSONObject()
        switch self {
        case .unfinished(let status): return status.json
        case .unclaimed(let path, let length, let owner):
            object.add("path", path)
            object.add("state", "unfinished")
            object.add("heldBytes", length)
            object.add("goesOn", false)
            object.add("lockedBy", owner)
        case .finished(let path, let length):
            object.add("path", path)
            object.add("state", "finished")
            object.add("completeLength", length)
        case .ordinary(let path, let length):
            object.add("path", path)
            object.add("state", "ordinary")
            object.add("length", length)
        }
        return object
    }
}
