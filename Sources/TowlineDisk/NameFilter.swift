/// Names of which a few bits each are kept: whether one was entered may be answered wrongly with yes, never with no (Bloom,
/// *Space/time trade-offs in hash coding with allowable errors*, 1970).
///
/// Two bits of sixteen for a name: one question in seventy is answered wrongly, and a million names take 2 MiB. What comes
/// beyond the number expected goes to further filters, each four times as large and as often wrong (Almeida et al.,
/// *Scalable Bloom Filters*, 2007): of many files that come to an empty directory few have to be looked for.
struct NameFilter: Sendable {
    fileprivate struct Layer {
        var words: [UInt64]
        /// So many more names have room.
        var room: Int

        init(room: Int) {
            self.room = room
            words = [UInt64](repeating: 0, count: room / NameFilter.namesPerWord)
        }
    }

    private static let namesPerWord = 4
    private static let leastRoom = 1024

    /// The last one takes what is entered.
    private var layers: [Layer]

    /// - Parameter count: so many names are to come at first.
    init(expecting count: Int) {
        var room = Self.leastRoom
        while room < count { room *= 2 }
        layers = [Layer(room: room)]
    }

    mutating func insert(_ name: String) {
        let hash = Self.hash(name)
        if layers[layers.count - 1].room == 0 {
            layers.append(Layer(room: layers[layers.count - 1].words.count * Self.namesPerWord * 4))
        }
        layers[layers.count - 1].insert(hash)
    }

    /// Whether the name may have been entered.
    func mayContain(_ name: String) -> Bool {
        let hash = Self.hash(name)
        return layers.contains { $0.mayContain(hash) }
    }

    private static func hash(_ name: String) -> UInt64 { UInt64(bitPattern: Int64(name.hashValue)) }
}

extension NameFilter.Layer {
    fileprivate mutating func insert(_ hash: UInt64) {
        let (first, second) = places(of: hash)
        words[first.word] |= first.bit
        words[second.word] |= second.bit
        room -= 1
    }

    fileprivate func mayContain(_ hash: UInt64) -> Bool {
        let (first, second) = places(of: hash)
        return words[first.word] & first.bit != 0 && words[second.word] & second.bit != 0
    }

    private typealias Place = (word: Int, bit: UInt64)

    private func places(of hash: UInt64) -> (Place, Place) { (place(hash & 0xFFFF_FFFF), place(hash >> 32)) }

    private func place(_ number: UInt64) -> Place {
        (Int(number >> 6) & (words.count - 1), 1 << (number & 63))
    }
}
