internal import TowlineCore

/// Who reads a transfer's bytes while they arrive, and what each will read next.
struct ReaderList: Sendable {
    private struct Reader {
        var window = ByteRange(0, 0)
        let pulse: AsyncStream<Void>.Continuation
    }

    private var readers: [Int: Reader] = [:]
    private var nextNumber = 1
    private var isOver = false

    /// Whether nobody reads.
    var isEmpty: Bool { readers.isEmpty }

    /// Lets somebody read.
    ///
    /// - Returns: a number, and a stream that gives something whenever more may be there, and ends with the transfer.
    mutating func open() -> (number: Int, pulse: AsyncStream<Void>) {
        let (stream, continuation) = AsyncStream<Void>.makeStream(bufferingPolicy: .bufferingNewest(1))
        let number = nextNumber
        nextNumber += 1
        if isOver { continuation.finish() } else { readers[number] = Reader(pulse: continuation) }
        return (number, stream)
    }

    /// Notes what a reader will read next.
    ///
    /// - Returns: whether that is news for the plan: the reader waits, or went on by a good deal.
    mutating func move(_ number: Int, to window: ByteRange, isWaiting: Bool) -> Bool {
        guard let old = readers[number]?.window, old != window else { return false }
        guard ReadWindow.isNews(window, after: old, isWaiting: isWaiting) else { return false }
        readers[number]?.window = window
        return true
    }

    /// Somebody reads no more.
    ///
    /// - Returns: whether bytes were wanted for this reader.
    mutating func close(_ number: Int) -> Bool {
        guard let reader = readers.removeValue(forKey: number) else { return false }
        reader.pulse.finish()
        return !reader.window.isEmpty
    }

    /// What is wanted. Who came last is first: a player that jumps opens a new connection before it leaves the old one.
    var wanted: [ByteRange] {
        readers.sorted { $0.key > $1.key }.map(\.value.window).filter { !$0.isEmpty }
    }

    /// More may be there.
    func wake() {
        for reader in readers.values { reader.pulse.yield() }
    }

    /// No more will come.
    mutating func end() {
        isOver = true
        for reader in readers.values { reader.pulse.finish() }
        readers = [:]
    }
}
