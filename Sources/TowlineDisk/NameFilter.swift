/// A probabilistic set of file names (a Bloom filter): a lookup may wrongly answer yes, but never wrongly no (Bloom,
/// *Space/time trade-offs in hash coding with allowable errors*, 1970).
///
/// Each name sets two bits of sixteen: one lookup in seventy is wrong, and a million names take 2 MiB. Names beyond the
/// expected number go to further filters, each four times as large and with the same error rate (Almeida et al.,
/// *Scalable Bloom Filters*, 2007): in a directory that was empty at first, few of many new files need a lookup on
/// disk.
struct NameFilter: Sendable {
    fileprivate struct Layer {
        var words: [UInt64]
        /// The number of names that can still be inserted before the next filter is added.
        var room: Int

        init(room: Int) {
            self.room = room
            words = [UInt64](repeating: 0, count: room / NameFilter.namesPerWord)
        }
    }

    private static let namesPerWord = 4
    private static let leastRoom = 1024

    /// The filters, each larger than the previous one. New names go to the last one.
    private var layers: [Layer]

    /// Creates an empty set of file names.
    ///
    /// - Parameter count: the expected number of names.
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

    /// Returns whether the name may have been inserted; `false` is always right, `true` is wrong in few cases.
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
