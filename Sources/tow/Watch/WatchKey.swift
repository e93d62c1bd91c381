/// A key press in `tow watch`.
enum WatchKey: Hashable, Sendable {
    /// The arrow and paging keys.
    case up, down, pageUp, pageDown, home, end
    /// Ctrl-C, Ctrl-Z and Ctrl-L.
    case interrupt, suspend, redraw
    /// The Escape key alone.
    case escape
    /// A key that produces a printable character.
    case letter(Character)
}

/// A parser of keys from the bytes that a terminal sends (ECMA-48 §5.4, and the extensions of xterm, the Linux console
/// and others).
struct WatchKeyParser: Sendable {
    private var pending: [UInt8] = []

    /// The maximum length of a sequence in bytes. A longer sequence is unknown and is dropped.
    private static let longest = 32

    /// `true` if the input may be Escape or the start of a sequence. The next byte, or silence for a while, decides.
    var isWaiting: Bool { !pending.isEmpty }

    /// Adds bytes and returns the keys that are now complete.
    mutating func feed(_ bytes: some Sequence<UInt8>) -> [WatchKey] {
        pending += bytes
        var keys: [WatchKey] = []
        while let (key, count) = next() {
            pending.removeFirst(count)
            if let key { keys.append(key) }
        }
        return keys
    }

    /// Resolves pending bytes after a silence: the start of a sequence that did not continue was the Escape key.
    mutating func flush() -> [WatchKey] {
        defer { pending = [] }
        return pending.first == 0x1B ? [.escape] : []
    }

    /// Returns the first key and its length in bytes; no key for bytes without a meaning; `nil` if more bytes are
    /// needed.
    private func next() -> (WatchKey?, Int)? {
        guard let first = pending.first else { return nil }
        switch first {
        case 0x1B: return sequence()
        case 0x03: return (.interrupt, 1)
        case 0x1A: return (.suspend, 1)
        case 0x0C: return (.redraw, 1)
        case 0x0E: return (.down, 1)
        case 0x10: return (.up, 1)
        case 0x20..<0x7F: return (.letter(Character(Unicode.Scalar(first))), 1)
        default: return (nil, 1)
        }
    }

    private func sequence() -> (WatchKey?, Int)? {
        guard pending.count > 1 else { return nil }
        switch pending[1] {
        case UInt8(ascii: "O"):
            guard pending.count > 2 else { return nil }
            return (Self.key(final: pending[2], parameters: []), 3)
        case UInt8(ascii: "["):
            // Parameters, intermediates, and a final byte.
            guard let end = pending.indices.dropFirst(2).first(where: { !(0x20..<0x40).contains(pending[$0]) }) else {
                return pending.count > Self.longest ? (nil, pending.count) : nil
            }
            // The Linux console sends its function keys as ESC [ [ A.
            if pending[end] == UInt8(ascii: "["), end == 2 {
                return pending.count > 3 ? (nil, 4) : nil
            }
            return (Self.key(final: pending[end], parameters: Array(pending[2..<end])), end + 1)
        default:
            // Alt and a key has no meaning here. Otherwise Escape was pressed twice.
            return pending[1] == 0x1B ? (.escape, 1) : (nil, 2)
        }
    }

    private static func key(final: UInt8, parameters: [UInt8]) -> WatchKey? {
        switch final {
        case UInt8(ascii: "A"): return .up
        case UInt8(ascii: "B"): return .down
        case UInt8(ascii: "H"): return .home
        case UInt8(ascii: "F"): return .end
        case UInt8(ascii: "~"):
            switch String(decoding: parameters.prefix { $0 != UInt8(ascii: ";") }, as: UTF8.self) {
            case "1", "7": return .home
            case "4", "8": return .end
            case "5": return .pageUp
            case "6": return .pageDown
            default: return nil
            }
        default: return nil
        }
    }
}
