internal import TowlineCore

/// The programs that read a file while it is downloaded, such as players, each with the byte range that it will read
/// next.
struct ReaderList: Sendable {
    /// A program that reads the file while it is downloaded: the byte range that it wants next, and the stream that
    /// signals it to read again.
    private struct Reader {
        var window = ByteRange(0, 0)
        let pulse: AsyncStream<Void>.Continuation
    }

    private var readers: [Int: Reader] = [:]
    private var nextNumber = 1
    /// `true` after `end`: the transfer has ended, and new readers get a stream that has ended.
    private var isOver = false

    /// Returns whether no program reads the file while it is downloaded.
    var isEmpty: Bool { readers.isEmpty }

    /// Adds a program that reads the file while it is downloaded, such as a player.
    ///
    /// - Returns: the number of the reader, and a stream that yields whenever more bytes may have arrived and ends with
    ///   the transfer.
    mutating func open() -> (number: Int, pulse: AsyncStream<Void>) {
        let (stream, continuation) = AsyncStream<Void>.makeStream(bufferingPolicy: .bufferingNewest(1))
        let number = nextNumber
        nextNumber += 1
        if isOver { continuation.finish() } else { readers[number] = Reader(pulse: continuation) }
        return (number, stream)
    }

    /// Records the byte range `window` that the reader with this number will read next, so that the transfer requests
    /// it first. `isWaiting`: the first bytes of `window` have not arrived.
    ///
    /// - Returns: `true` if the transfer must change the order of its requests: the reader waits, wanted no bytes
    ///   before, or has moved far.
    mutating func move(_ number: Int, to window: ByteRange, isWaiting: Bool) -> Bool {
        guard let old = readers[number]?.window, old != window else { return false }
        guard ReadWindow.isNews(window, after: old, isWaiting: isWaiting) else { return false }
        readers[number]?.window = window
        return true
    }

    /// Removes the reader with this number, and ends its stream.
    ///
    /// - Returns: `true` if the transfer requested bytes first for this reader, so that the order of its requests
    ///   changes.
    mutating func close(_ number: Int) -> Bool {
        guard let reader = readers.removeValue(forKey: number) else { return false }
        reader.pulse.finish()
        return !reader.window.isEmpty
    }

    /// The byte ranges that readers of the file want next, the newest reader first: a player that jumps opens a new
    /// connection before it closes the old one.
    var wanted: [ByteRange] {
        readers.sorted { $0.key > $1.key }.map(\.value.window).filter { !$0.isEmpty }
    }

    /// Signals to all readers of the file that more bytes may have arrived, so that they read again.
    func wake() {
        for reader in readers.values { reader.pulse.yield() }
    }

    /// Ends the streams of all readers of the file, also of those that are added later, because the transfer has ended.
    mutating func end() {
        isOver = true
        for reader in readers.values { reader.pulse.finish() }
        readers = [:]
    }
}
