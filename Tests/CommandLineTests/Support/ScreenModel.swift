/// A model of a terminal, sufficient for progress bars: the lines that a user sees after some output.
struct ScreenModel {
    private(set) var lines: [[Character]] = [[]]
    private var row = 0
    private var column = 0
    let width: Int

    init(width: Int) { self.width = width }

    /// The lines without colours and trailing spaces; empty lines at the end are left out.
    var text: [String] {
        var shown = lines.map { line -> String in
            var line = line
            while line.last == " " { line.removeLast() }
            return String(line)
        }
        while shown.last == "" { shown.removeLast() }
        return shown
    }

    mutating func write(_ output: String) {
        var rest = output[...]
        while let character = rest.popFirst() {
            switch character {
            case "\u{1B}": escape(&rest)
            case "\n", "\r\n": move(to: row + 1)
            case "\r": column = 0
            default: put(character)
            }
        }
    }

    private mutating func move(to newRow: Int) {
        row = newRow
        column = 0
        while lines.count <= row { lines.append([]) }
    }

    private mutating func put(_ character: Character) {
        if column == width { move(to: row + 1) }
        while lines[row].count <= column { lines[row].append(" ") }
        lines[row][column] = character
        column += 1
    }

    private mutating func escape(_ rest: inout Substring) {
        guard rest.popFirst() == "[" else { return }
        var digits = ""
        while let character = rest.popFirst() {
            if character.isNumber || character == ";" {
                digits.append(character)
                continue
            }
            switch character {
            case "A": row = max(0, row - (Int(digits) ?? 1))
            case "K": lines[row].removeSubrange(min(column, lines[row].count)...)
            case "J":
                lines[row].removeSubrange(min(column, lines[row].count)...)
                lines.removeSubrange((row + 1)...)
            default: break
            }
            return
        }
    }
}
