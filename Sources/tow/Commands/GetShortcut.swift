/// A reader of plain arguments of `tow get`, used instead of the parser. The parser takes longer to learn all commands
/// and options (by reflection, a third of the run time for a small file) than to parse.
///
/// Accepts only arguments that the parser reads in the same way. The parser handles unusual, wrong and help arguments.
enum GetShortcut {
    static let name = "get"

    /// Returns the plan for the arguments of the process without its name; `nil` if the parser must handle them.
    static func plan(_ words: ArraySlice<String>) -> GetPlan? {
        guard words.first == name, let arguments = arguments(words.dropFirst()) else { return nil }
        return try? GetPlan(arguments)
    }

    private static func arguments(_ words: ArraySlice<String>) -> GetArguments? {
        var arguments = GetArguments()
        var seen: [String] = []
        var rest = words
        while let word = rest.popFirst() {
            guard word.hasPrefix("-") else {
                guard !word.isEmpty else { return nil }
                arguments.urls.append(word)
                continue
            }
            guard let name = longName(word), !seen.contains(name) else { return nil }
            seen.append(name)
            switch name {
            case "quiet": arguments.report.isQuiet = true
            case "json": arguments.report.isJSON = true
            case "input-file", "concurrency":
                guard let value = rest.popFirst(), isPlain(value) else { return nil }
                if name == "concurrency" { arguments.concurrency = value } else { arguments.inputFiles = [value] }
            default:
                // Not `init(rawValue:)`, which builds a table of all cases.
                guard let setting = Setting.allCases.first(where: { $0.rawValue == name }), setting.isPlain else {
                    return nil
                }
                guard !setting.isFlag else {
                    arguments.given.append((setting, ""))
                    continue
                }
                guard let value = rest.popFirst(), isPlain(value) else { return nil }
                arguments.given.append((setting, value))
            }
        }
        return arguments
    }

    private static func longName(_ word: String) -> String? {
        if word.hasPrefix("--") { return String(word.dropFirst(2)) }
        switch word {
        case "-q": return "quiet"
        case "-o": return "output"
        case "-d": return "directory"
        case "-i": return "input-file"
        case "-j": return "concurrency"
        case "-x": return "connections"
        default: return nil
        }
    }

    /// Returns whether a value cannot be taken for an option. `-` alone is a standard stream.
    private static func isPlain(_ value: String) -> Bool { value == "-" || !value.hasPrefix("-") && !value.isEmpty }
}
