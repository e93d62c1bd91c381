import CCurl
internal import TowlineCore

/// The lines of the last heads, as they came and as the fields that they are: a server's next head has most of them again, and
/// comparing bytes is quicker than making text of them (`docs/performance.md`). Confined to its engine thread.
final class FieldCache {
    private struct Slot {
        var length: Int
        var field: HTTPFields.Field
    }

    private static let lineCount = 16
    private static let longestLine = 96

    /// By the line's place in its head.
    private let slots: UnsafeMutableBufferPointer<Slot?>
    /// So many bytes for each slot.
    private let bytes: UnsafeMutableRawPointer

    init() {
        slots = .allocate(capacity: Self.lineCount)
        slots.initialize(repeating: nil)
        bytes = .allocate(byteCount: Self.lineCount * Self.longestLine, alignment: 16)
    }

    deinit {
        slots.deinitialize().deallocate()
        bytes.deallocate()
    }

    /// The field that this very line was, when one was last at that place of a head.
    func field(_ line: UnsafeRawBufferPointer, at index: Int) -> HTTPFields.Field? {
        guard index < Self.lineCount, let slot = slots[index], slot.length == line.count, let start = line.baseAddress,
            memcmp(start, bytes + index * Self.longestLine, line.count) == 0
        else { return nil }
        return slot.field
    }

    /// Keeps what a line was found to be, unless it may be a secret, which is not to outlive its download.
    func keep(_ field: HTTPFields.Field, of line: UnsafeRawBufferPointer, at index: Int) {
        guard index < Self.lineCount else { return }
        guard line.count <= Self.longestLine, let start = line.baseAddress, !Self.isSecret(field.name) else {
            return slots[index] = nil
        }
        slots[index] = Slot(length: line.count, field: field)
        (bytes + index * Self.longestLine).copyMemory(from: start, byteCount: line.count)
    }

    private static func isSecret(_ name: String) -> Bool {
        HTTPFields.equalNames(name, "Set-Cookie") || HTTPFields.equalNames(name, "Location")
    }
}
