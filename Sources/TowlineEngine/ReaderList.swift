internal import TowlineCore

/// The readers of a transfer's bytes while they arrive, each with the range that it will read next.
struct ReaderList: Sendable {
    private struct Reader {
        var window = ByteRange(0, 0)
        let pulse: AsyncStream<Void>.Continuation
    }

    private var readers: [Int: Reader] = [:]
    private var nextNumber = 1
    private var isOver = false

    /// Returns whether there are no readers.
    var isEmpty: Bool { readers.isEmpty }

    /// Adds a reader.
    ///
    /// - Returns: the number of the reader, and a stream that yields whenever more bytes may be there and ends with the
    ///   transfer.
    mutating func open() -> (number: Int, pulse: AsyncStream<Void>) {
        let (stream, continuation) = AsyncStream<Void>.makeStream(bufferingPolicy: .bufferingNewest(1))
        let number = nextNumber
        nextNumber += 1
        if isOver { continuation.finish() } else { readers[number] = Reader(pulse: continuation) }
        return (number, stream)
    }

    /// Notes the range that a reader will read next.
    ///
    /// - Returns: `true` if that changes the plan: the reader waits, wanted nothing before, or has moved far.
    mutating func move(_ number: Int, to window: ByteRange, isWaiting: Bool) -> Bool {
        guard let old = readers[number]?.window, old != window else { return false }
        guard ReadWindow.isNews(window, after: old, isWaiting: isWaiting) else { return false }
        readers[number]?.window = window
        return true
    }

    /// Removes a reader, and ends its stream.
    ///
    /// - Returns: `true` if bytes were wanted for this reader.
    mutating func close(_ number: Int) -> Bool {
        guard let reader = readers.removeValue(forKey: number) else { return false }
        reader.pulse.finish()
        return !reader.window.isEmpty
    }

    /// The ranges that readers want, the newest reader first: a player that jumps opens a new connection before it
    /// closes the old one.
    var wanted: [ByteRange] {
        readers.sorted { $0.key > $1.key }.map(\.value.window).filter { !$0.isEmpty }
    }

    /// Signals all readers that more bytes may be there.
    func wake() {
        for reader in readers.values { reader.pulse.yield() }
    }

    /// Ends the streams of all readers, also of those that are added later.
    mutating func end() {
        isOver = true
        for reader in readers.values { reader.pulse.finish() }
        readers = [:]
    }
}
