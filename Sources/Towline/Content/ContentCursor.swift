import Foundation
import TowlineCore
import TowlineDisk
import TowlineEngine

/// A reader of a byte range of a download, in ascending order. Reads from the running transfer or from the file on the
/// disk, and changes the source when the download starts or ends.
actor ContentCursor {
    /// The maximum number of bytes that one call of `next` returns.
    private static let pieceSize = 256 << 10

    /// The source that the next bytes are read from: a running transfer or a file on the disk.
    private enum ByteSource {
        case unknown
        case transfer(TransferReading, generation: Int)
        case file(ContentFile)
    }

    private let id: DownloadID
    private let list: DownloadList
    private var binding: ContentBinding
    private var rest: ByteRange
    private var source = ByteSource.unknown

    init(_ id: DownloadID, _ list: DownloadList, _ binding: ContentBinding, _ range: ByteRange) {
        (self.id, self.list, self.binding, rest) = (id, list, binding, range)
    }

    /// Waits for the next bytes and returns them, at most 256 KiB; `nil` at the end of the range. Throws
    /// `changedOnServer` if the later bytes are not of the same version of the file.
    func next() async throws(TowlineError) -> Data? {
        while !rest.isEmpty {
            if Task.isCancelled { throw Self.cancelled }
            let bytes: [UInt8]?
            switch source {
            case .unknown:
                try await find()
                continue
            case .file(let file): bytes = try await read(file)
            case .transfer(let reading, let generation): bytes = try await read(reading, generation)
            }
            guard let bytes else { continue }
            rest = ByteRange(rest.lowerBound + Int64(bytes.count), rest.upperBound)
            return Data(bytes)
        }
        return nil
    }

    private static let changed = TowlineError(
        .changedOnServer,
        "the content of the download changed while the app read it, for example because Towline restarted the download "
            + "after a change on the server. Read the content again from the beginning")

    static let cancelled = TowlineError(
        .cancelled, "reading the content of the download was cancelled; the download is not affected")

    private func find() async throws(TowlineError) {
        switch try await list.contentSource(id, at: rest.lowerBound) {
        case .file(let file):
            guard await binding.holds(file) else { throw Self.changed }
            source = .file(file)
        case .transfer(let runner):
            let reading = await TransferReading(runner)
            guard let content = await reading.begun else { return try await TransferReading.pause() }
            guard binding.holds(content, of: runner) else { throw Self.changed }
            binding.follow(content, of: runner)
            source = .transfer(reading, generation: content.generation)
        }
    }

    /// Reads bytes at the beginning of the unread range from a running transfer.
    ///
    /// - Returns: `nil` if no byte at this offset has arrived, the file has ended, or the transfer has ended.
    private func read(_ reading: TransferReading, _ generation: Int) async throws(TowlineError) -> [UInt8]? {
        switch try await reading.read(rest, atMost: Self.pieceSize, generation: generation) {
        case .bytes(let bytes): return bytes
        case .end: rest = ByteRange(rest.lowerBound, rest.lowerBound)
        case .changed: throw Self.changed
        case .missing: if await !reading.more() { source = .unknown }
        case .over:
            source = .unknown
            try await TransferReading.pause()
        }
        return nil
    }

    /// Reads bytes at the beginning of the unread range from a file on the disk.
    ///
    /// - Returns: `nil` at the end of the file, or if the bytes must be looked for again in a transfer or another file.
    private func read(_ file: ContentFile) async throws(TowlineError) -> [UInt8]? {
        let (offset, count) = (rest.lowerBound, Int(min(rest.count, Int64(Self.pieceSize))))
        if let length = file.completeLength, offset >= length {
            rest = ByteRange(offset, offset)
            return nil
        }
        let bytes = try await file.read(at: offset, atMost: count)
        if !bytes.isEmpty { return bytes }
        source = .unknown
        if case .file(let other) = try await list.contentSource(id, at: offset),
            other.available.range(holding: offset) == nil
        {
            throw TowlineError(
                .illegalTransition,
                "cannot read more content: the download stopped before all bytes arrived. Resume the download first")
        }
        return nil
    }
}
