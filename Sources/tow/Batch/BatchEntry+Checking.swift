import Glibc
import TowlineCore

/// Checks of the entries of a list and of their options.
extension BatchEntry {
    /// Checks the entry as text.
    ///
    /// - Throws: `unusableOption` with the list and the line.
    func check(in list: String) throws(TowlineError) {
        switch problem {
        case .optionWithoutURL:
            throw ListPlaces.Line(list: list, line: number).problem(
                "this option has no URL above it. Write the URL first, then its options in indented lines below it")
        case .optionNotIndented(let line):
            let name = TerminalSafeText.make(line.name, width: 40)
            throw ListPlaces.Line(list: list, line: line.number).problem(
                "the option '\(name)' belongs to the URL above, so its line must begin with a space."
                    + " That URL is not downloaded. Add the space and run the command again")
        case .indentedURL:
            throw ListPlaces.Line(list: list, line: number).problem(
                "this URL is not downloaded because its line begins with white space, as options of the URL above do."
                    + " Remove the white space and run the command again")
        case .lineTooLong(let line):
            throw ListPlaces.Line(list: list, line: line).problem(
                "this URL is not downloaded because the line is longer than"
                    + " \(BatchLineSplitter.maximumLength) bytes. Shorten the line and run the command again")
        case .unreadable(let error):
            let place = number > 0 ? " after line \(number)" : ""
            throw TowlineError(
                .unusableOption,
                "cannot read URLs from \(list)\(place): \(String(cString: strerror(error)))."
                    + " The rest of the list is not downloaded. Check the list and run the command again")
        case nil: break
        }
        guard !url.utf8.contains(0x09) else {
            throw ListPlaces.Line(list: list, line: number).problem(
                "this line contains a tab. If it has several URLs of one file, write the first URL alone and the others as"
                    + " mirror=URL in indented lines below it")
        }
    }
}

extension BatchEntry.Line {
    /// Returns the setting that the line names.
    ///
    /// - Throws: `unusableOption` with the list and the line.
    func setting(in list: String) throws(TowlineError) -> Setting {
        guard let setting = Setting(rawValue: name) else {
            let shown = TerminalSafeText.make(name, width: 40)
            let here = Habit.setting(name).map { "Use '\($0.rawValue)' instead" } ?? "Remove this line"
            throw ListPlaces.Line(list: list, line: number).problem(
                "the URL above is not downloaded because the option '\(shown)' is not supported in a list of URLs."
                    + " \(here)")
        }
        guard setting.isFlag == value.isEmpty else {
            throw ListPlaces.Line(list: list, line: number).problem(
                setting.isFlag
                    ? "the URL above is not downloaded because the option '\(setting.rawValue)' takes no value."
                        + " Remove the value from this line"
                    : "the URL above is not downloaded because the option '\(setting.rawValue)' needs a value."
                        + " Write \(setting.rawValue)=VALUE"
            )
        }
        return setting
    }
}

extension ListPlaces.Line {
    /// Returns an error whose message begins with this line.
    func problem(_ message: String, _ code: TowlineError.Code = .unusableOption) -> TowlineError {
        TowlineError(code, text + message)
    }
}
