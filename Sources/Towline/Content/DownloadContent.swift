public import Foundation
public import TowlineCore

/// The bytes of a download, as they were when this was asked for: of one version of the file and no other.
///
/// They are what the server sent under one proof of identity (RFC 9110 §13.1.5). A checksum of the whole can only be
/// compared when the whole is there: who needs that waits for ``Download/file``.
public struct DownloadContent: Sendable {
    /// Size of the whole in bytes; `nil`: the server does not tell, it ends where it ends.
    public let completeLength: Int64?
    /// Two contents with the same version are the same bytes; `nil`: nothing vouches for that.
    public let version: String?
    private let id: DownloadID
    private let center: DownloadCenter
    private let binding: ContentBinding

    init(_ id: DownloadID, _ center: DownloadCenter) async throws(TowlineError) {
        binding = try await ContentBinding.first(of: id, center)
        (completeLength, version) = (binding.completeLength, binding.version)
        (self.id, self.center) = (id, center)
    }

    /// Reads a part, or everything: pieces of at most 256 KiB, each as soon as it is there. Many parts may be read at
    /// once; who began last is served first.
    ///
    /// The sequence throws `changedOnServer` if the file turns out to be another one, `illegalTransition` if the download
    /// stops before the bytes are there, and what reading fails with.
    ///
    /// - Parameter range: offsets; what lies beyond the end is not there. `nil`: all.
    public func bytes(in range: Range<Int64>? = nil) -> Bytes {
        let lower = max(0, range?.lowerBound ?? 0)
        return Bytes(
            id: id, center: center, binding: binding,
            range: ByteRange(lower, max(lower, min(range?.upperBound ?? .max, completeLength ?? .max))))
    }

    /// A part of a download's bytes, in order.
    public struct Bytes: AsyncSequence, Sendable {
        /// A piece of the bytes.
        public typealias Element = Data
        /// What ends the sequence before its end.
        public typealias Failure = TowlineError
        let id: DownloadID
        let center: DownloadCenter
        let binding: ContentBinding
        let range: ByteRange

        /// Begins to read.
        public func makeAsyncIterator() -> Iterator {
            Iterator(cursor: ContentCursor(id, center, binding, range))
        }

        /// Reads piece by piece.
        public struct Iterator: AsyncIteratorProtocol, Sendable {
            let cursor: ContentCursor

            /// The next piece; `nil` at the end.
            public mutating func next() async throws(TowlineError) -> Data? { try await cursor.next() }

            /// The next piece; `nil` at the end.
            public mutating func next(
                isolation actor: isolated (any Actor)?
            ) async throws(TowlineError) -> Data? {
                try await cursor.next()
            }
        }
    }
}
