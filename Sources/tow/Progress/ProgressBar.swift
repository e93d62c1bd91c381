/// A bar of exactly `width` cells, with eighths of a cell if the terminal can show them. Bytes from earlier runs have
/// another shade.
enum ProgressBar {
    /// - Parameters:
    ///   - fraction: the held part of the whole, 0 to 1.
    ///   - resumed: the part of the whole that was held at the start, 0 to 1.
    ///   - width: the width in cells, at least 3.
    static func make(fraction: Double, resumed: Double, width: Int, style: TerminalStyle) -> String {
        let fraction = clamped(fraction)
        let resumed = min(clamped(resumed), fraction)
        if !style.unicode { return ascii(fraction, resumed, width: width - 2) }
        return style.color ? colored(fraction, resumed, width: width) : plain(fraction, resumed, width: width - 2)
    }

    /// Returns a bar for an unknown length: a block that moves from one end to the other and back.
    static func wandering(step: Int, width: Int, style: TerminalStyle) -> String {
        let inner = style.unicode && style.color ? width : width - 2
        let piece = max(1, min(4, inner / 3))
        let room = inner - piece
        let phase = room == 0 ? 0 : step % (2 * room)
        let before = phase <= room ? phase : 2 * room - phase
        let (left, right) = (spaces(before), spaces(room - before))
        if !style.unicode { return "[" + dots(before) + repeated("#", piece) + dots(room - before) + "]" }
        if !style.color { return "▕" + left + repeated("█", piece) + right + "▏" }
        return track + left + fresh + repeated("█", piece) + right + reset
    }

    private static let track = "\u{1B}[48;5;238m"
    private static let old = "\u{1B}[38;5;31m"
    private static let fresh = "\u{1B}[38;5;80m"
    private static let reset = "\u{1B}[0m"
    private static let eighths = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"]

    private static func colored(_ fraction: Double, _ resumed: Double, width: Int) -> String {
        let parts = Parts(fraction, resumed, width: width)
        return track + (parts.old > 0 ? old + repeated("█", parts.old) : "") + fresh + repeated("█", parts.fresh)
            + eighths[parts.eighths] + spaces(parts.rest) + reset
    }

    private static func plain(_ fraction: Double, _ resumed: Double, width: Int) -> String {
        let parts = Parts(fraction, resumed, width: width)
        return "▕" + repeated("▒", parts.old) + repeated("█", parts.fresh) + eighths[parts.eighths]
            + spaces(parts.rest) + "▏"
    }

    private static func ascii(_ fraction: Double, _ resumed: Double, width: Int) -> String {
        let full = Int(fraction * Double(width))
        let old = min(full, Int(resumed * Double(width)))
        return "[" + repeated("=", old) + repeated("#", full - old) + dots(width - full) + "]"
    }

    /// The number of cells of each kind. Rounded down: the bar is full only when all bytes are held.
    private struct Parts {
        let old: Int
        let fresh: Int
        let eighths: Int
        let rest: Int

        init(_ fraction: Double, _ resumed: Double, width: Int) {
            let all = Int(fraction * Double(width * 8))
            old = min(Int(resumed * Double(width)), all / 8)
            fresh = all / 8 - old
            eighths = all % 8
            rest = width - all / 8 - (eighths > 0 ? 1 : 0)
        }
    }

    private static func clamped(_ value: Double) -> Double { value.isFinite ? min(1, max(0, value)) : 0 }
    private static func repeated(_ text: String, _ count: Int) -> String {
        String(repeating: text, count: max(0, count))
    }
    private static func spaces(_ count: Int) -> String { repeated(" ", count) }
    private static func dots(_ count: Int) -> String { repeated(".", count) }
}
