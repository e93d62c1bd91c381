/// Names of which a few bits each are kept: whether one was entered may be answered wrongly with yes, never with no (Bloom,
/// *Space/time trade-offs in hash coding with allowable errors*, 1970).
///
/// Two bits of sixteen for a name: one question in seventy is answered wrongly, and a million names take 2 MiB.
struct NameFilter: Sendable {
    private var words: [UInt64]

    /// - Parameter count: so many names are to come; more of them make for more wrong answers.
    init(expecting count: Int) {
        var size = 64
        while size < count / 4 { size *= 2 }
        words = [UInt64](repeating: 0, count: size)
    }

    mutating func insert(_ name: String) {
        let (first, second) = places(of: name)
        words[first.word] |= first.bit
        words[second.word] |= second.bit
    }

    /// Whether the name may have been entered.
    func mayContain(_ name: String) -> Bool {
        let (first, second) = places(of: name)
        return words[first.word] & first.bit != 0 && words[second.word] & second.bit != 0
    }

    private typealias Place = (word: Int, bit: UInt64)

    private func places(of name: String) -> (Place, Place) {
        let hash = UInt64(bitPattern: Int64(name.hashValue))
        return (place(hash & 0xFFFF_FFFF), place(hash >> 32))
    }

    private func place(_ number: UInt64) -> Place {
        (Int(number >> 6) & (words.count - 1), 1 << (number & 63))
    }
}
