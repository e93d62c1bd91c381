/// What a terminal can show.
struct TerminalStyle: Hashable {
    /// Letters and blocks beyond ASCII.
    var unicode: Bool
    /// Colours, 256 of them.
    var color: Bool

    /// What the environment says: the locale's character set, `TERM`, and `NO_COLOR` (no-color.org: set and not empty).
    init(environment: [String: String]) {
        let locale = ["LC_ALL", "LC_CTYPE", "LANG"].lazy.compactMap { environment[$0] }.first { !$0.isEmpty } ?? ""
        let name = locale.lowercased()
        let terminal = environment["TERM"] ?? ""
        let isDumb = terminal.isEmpty || terminal == "dumb"
        unicode = !isDumb && (name.contains("utf-8") || name.contains("utf8"))
        color = !isDumb && environment["NO_COLOR", default: ""].isEmpty
    }

    init(unicode: Bool, color: Bool) {
        self.unicode = unicode
        self.color = color
    }

    /// Foreground colours with a meaning.
    enum Ink: String {
        case good = "32"
        case bad = "31"
        case attention = "33"
        case quiet = "2"
        case strong = "1"
    }

    /// The text in a colour, or as it is.
    func paint(_ text: String, _ ink: Ink) -> String {
        color && !text.isEmpty ? "\u{1B}[\(ink.rawValue)m\(text)\u{1B}[0m" : text
    }

    /// The sign before the line of a download that ended well.
    var doneMark: String { paint(unicode ? "✓" : "+", .good) }
    /// The sign before the line of one that failed.
    var failedMark: String { paint(unicode ? "✗" : "x", .bad) }
    /// The sign before a warning.
    var warningMark: String { paint("!", .attention) }
    /// The sign before something good to know.
    var noteMark: String { paint(unicode ? "·" : "-", .quiet) }
    /// Between two facts.
    var separator: String { unicode ? " · " : " - " }
}
