public import Foundation
public import TowlineCore

/// The bytes of a download, all from the same version of the file.
///
/// The bytes are not verified with ``TowlineCore/TransferOptions/checksum``, because a checksum needs the complete
/// file. To read verified bytes, wait for ``Download/file``.
public struct DownloadContent: Sendable {
    /// The size of the file in bytes; `nil` if the server does not report the size.
    public let completeLength: Int64?
    /// The version of the file: contents with the same version have the same bytes. `nil` if the version is unknown.
    public let version: String?
    private let id: DownloadID
    private let list: DownloadList
    private let binding: ContentBinding

    init(_ id: DownloadID, _ list: DownloadList) async throws(TowlineError) {
        binding = try await ContentBinding.first(of: id, list)
        (completeLength, version) = (binding.completeLength, binding.version)
        (self.id, self.list) = (id, list)
    }

    /// Returns a sequence of the bytes in a range, as `Data` values of at most 256 KiB.
    ///
    /// Bytes are delivered as soon as they arrive. Several ranges can be read at the same time. Missing bytes of the
    /// most recent reader are downloaded first.
    ///
    /// The sequence throws `changedOnServer` if the file changes, `illegalTransition` if the download stops before the
    /// bytes arrive, `cancelled` if the task is cancelled, or the error of a failed read.
    ///
    /// - Parameter range: the byte offsets to read. Offsets after the end of the file are ignored. `nil` reads the
    ///   complete file.
    public func bytes(in range: Range<Int64>? = nil) -> Bytes {
        let lower = max(0, range?.lowerBound ?? 0)
        return Bytes(
            id: id, list: list, binding: binding,
            range: ByteRange(lower, max(lower, min(range?.upperBound ?? .max, completeLength ?? .max))))
    }

    /// An asynchronous sequence of the bytes in a range of a download, in ascending order.
    public struct Bytes: AsyncSequence, Sendable {
        /// The next bytes of the range, at most 256 KiB and never empty.
        public typealias Element = Data
        /// The error that ends the sequence early.
        public typealias Failure = TowlineError
        let id: DownloadID
        let list: DownloadList
        let binding: ContentBinding
        let range: ByteRange

        /// Returns an iterator that starts at the beginning of the range.
        public func makeAsyncIterator() -> Iterator {
            Iterator(cursor: ContentCursor(id, list, binding, range))
        }

        /// The iterator over the bytes of a range of the download.
        public struct Iterator: AsyncIteratorProtocol, Sendable {
            let cursor: ContentCursor

            /// Waits for the next bytes and returns them; `nil` at the end of the range.
            public mutating func next() async throws(TowlineError) -> Data? { try await cursor.next() }

            /// Waits for the next bytes and returns them; `nil` at the end of the range.
            public mutating func next(
                isolation actor: isolated (any Actor)?
            ) async throws(TowlineError) -> Data? {
                try await cursor.next()
            }
        }
    }
}
