import CCurl
internal import TowlineCore

/// The lines of the last heads, as they came and as the fields that they are: a server's next head has most of them again, and
/// comparing bytes is quicker than making text of them (`docs/performance.md`). Confined to its engine thread.
final class FieldCache {
    private struct Slot {
        var length: Int
        var field: HTTPFields.Field
    }

    /// Of each kind of head.
    private static let lineCount = 16
    /// A redirect's head and that of what it leads to have other lines, and come in turn.
    private static let kindCount = 2
    private static let longestLine = 96

    /// By the kind of head and the line's place in it.
    private let slots: UnsafeMutableBufferPointer<Slot?>
    /// So many bytes for each slot.
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

    /// The field that this very line was, when one was last at that place of a head of that kind.
    func field(_ line: UnsafeRawBufferPointer, at index: Int, status: Int) -> HTTPFields.Field? {
        guard let place = Self.place(index, status), let slot = slots[place], slot.length == line.count,
            let start = line.baseAddress, memcmp(start, bytes + place * Self.longestLine, line.count) == 0
        else { return nil }
        return slot.field
    }

    /// Keeps what a line was found to be, unless it may be a secret, which is not to outlive its download.
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
