import CCurl
internal import TowlineCore

/// A cache of the header lines of the latest response heads, as bytes and as parsed fields. The next head of a server
/// repeats most of them, and comparing bytes is faster than decoding text (`docs/performance.md`). Confined to one
/// engine thread, a thread that runs libcurl.
final class FieldCache {
    private struct Slot {
        var length: Int
        var field: HTTPFields.Field
    }

    /// The number of lines cached for each kind of head; later lines of a head are not cached.
    private static let lineCount = 16
    /// The number of kinds of heads: redirects (status 3xx), and all others. The heads of a redirect and of its target
    /// alternate and have different lines.
    private static let kindCount = 2
    private static let longestLine = 96

    /// The cached fields, by the kind of head and the line's index in the head.
    private let slots: UnsafeMutableBufferPointer<Slot?>
    /// The bytes of the cached lines, `longestLine` for each slot.
    private let bytes: UnsafeMutableRawPointer

    init() {
        slots = .allocate(capacity: Self.kindCount * Self.lineCount)
        slots.initialize(repeating: nil)
        bytes = .allocate(byteCount: Self.kindCount * Self.lineCount * Self.longestLine, alignment: 16)
    }

    deinit {
        slots.deinitialize().deallocate()
        bytes.deallocate()
    }

    /// Returns the parsed field of the line at `index` of a head with the given status, if the previous head of that
    /// kind (redirect or not) had the same line there. Otherwise, or if that line is not cached, returns `nil`: the
    /// caller must parse the line.
    func field(_ line: UnsafeRawBufferPointer, at index: Int, status: Int) -> HTTPFields.Field? {
        guard let place = Self.place(index, status), let slot = slots[place], slot.length == line.count,
            let start = line.baseAddress, memcmp(start, bytes + place * Self.longestLine, line.count) == 0
        else { return nil }
        return slot.field
    }

    /// Caches the field of the line at `index` of a head. Skips a line of more than 96 bytes, and a field that may be a
    /// secret (a cookie or a redirect target), because a secret must not outlive its download.
    func keep(_ field: HTTPFields.Field, of line: UnsafeRawBufferPointer, at index: Int, status: Int) {
        guard let place = Self.place(index, status) else { return }
        guard line.count <= Self.longestLine, let start = line.baseAddress, !Self.isSecret(field.name) else {
            return slots[place] = nil
        }
        slots[place] = Slot(length: line.count, field: field)
        (bytes + place * Self.longestLine).copyMemory(from: start, byteCount: line.count)
    }

    private static func place(_ index: Int, _ status: Int) -> Int? {
        guard index < lineCount else { return nil }
        return (300..<400).contains(status) ? lineCount + index : index
    }

    private static func isSecret(_ name: String) -> Bool {
        HTTPFields.equalNames(name, "Set-Cookie") || HTTPFields.equalNames(name, "Location")
    }
}
