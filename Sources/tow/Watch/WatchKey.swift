/// A key of `tow watch`.
enum WatchKey: Hashable, Sendable {
    /// The arrows, and those that go further.
    case up, down, pageUp, pageDown, home, end
    /// Ctrl-C, Ctrl-Z, Ctrl-L.
    case interrupt, suspend, redraw
    /// Escape alone.
    case escape
    /// One that prints.
    case letter(Character)
}

/// Keys out of the bytes that a terminal sends (ECMA-48 §5.4, and what xterm, the Linux console and others add).
struct WatchKeyParser: Sendable {
    private var pending: [UInt8] = []

    /// A sequence that is longer is none that is known, and is dropped.
    private static let longest = 32

    /// Escape, or the beginning of a sequence: only what comes next, or nothing for a while, tells.
    var isWaiting: Bool { !pending.isEmpty }

    /// The keys that are complete now.
    mutating func feed(_ bytes: some Sequence<UInt8>) -> [WatchKey] {
        pending += bytes
        var keys: [WatchKey] = []
        while let (key, count) = next() {
            pending.removeFirst(count)
            if let key { keys.append(key) }
        }
        return keys
    }

    /// Nothing came for a while: what looked like the beginning of a sequence was Escape.
    mutating func flush() -> [WatchKey] {
        defer { pending = [] }
        return pending.first == 0x1B ? [.escape] : []
    }

    /// The first key and how many bytes it takes, no key for bytes that mean nothing; `nil` if more is to come.
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
            // Alt and a key, which means nothing here; or Escape twice.
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
