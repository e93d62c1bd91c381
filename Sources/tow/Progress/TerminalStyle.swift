struct TerminalStyle: Hashable {
    /// `true` if the terminal shows letters and blocks beyond ASCII.
    var unicode: Bool
    /// `true` if the terminal shows 256 colors.
    var color: Bool

    /// Reads the capabilities from the locale's character set, `TERM`, and `NO_COLOR` (no-color.org: set and not
    /// empty).
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

    /// Foreground colors with a meaning.
    enum Ink: String {
        case good = "32"
        case bad = "31"
        case attention = "33"
        case quiet = "2"
        case strong = "1"
    }

    /// Returns the text in a color, or unchanged if the terminal shows no colors.
    func paint(_ text: String, _ ink: Ink) -> String {
        color && !text.isEmpty ? "\u{1B}[\(ink.rawValue)m\(text)\u{1B}[0m" : text
    }

    /// The mark of a successful download.
    var doneMark: String { paint(unicode ? "✓" : "+", .good) }
    /// The mark of a failed download.
    var failedMark: String { paint(unicode ? "✗" : "x", .bad) }
    /// The mark of a warning.
    var warningMark: String { paint("!", .attention) }
    /// The mark of a notice that is not a warning.
    var noteMark: String { paint(unicode ? "·" : "-", .quiet) }
    /// The separator between two facts.
    var separator: String { unicode ? " · " : " - " }
}
