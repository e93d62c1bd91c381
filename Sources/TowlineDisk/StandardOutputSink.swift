import Glibc
import Synchronization
package import TowlineCore
package import TowlineEngine

/// The sink that is a pipe or a terminal (`-o -`): bytes in order, nothing to take back, nothing to make durable.
package final class StandardOutputSink: Sink {
    private struct Tail {
        var position: Int64 = 0
        /// The last bytes written, for comparing an overlap; at least `capacity` of them, if there are so many.
        var bytes: [UInt8] = []
        /// What goes by is digested as it goes: it cannot be read again.
        var digests: [(algorithm: Checksum.Algorithm, digest: MessageDigest)]
        /// The digests' values, once they were asked for.
        var values: [Checksum.Algorithm: [UInt8]]?

        mutating func take(_ new: UnsafeRawBufferPointer) {
            position += Int64(new.count)
            for entry in digests { entry.digest.update(new) }
            if new.count >= StandardOutputSink.capacity {
                bytes = Array(new.suffix(StandardOutputSink.capacity))
            } else {
                bytes += new
                if bytes.count > 2 * StandardOutputSink.capacity {
                    bytes.removeFirst(bytes.count - StandardOutputSink.capacity)
                }
            }
        }
    }

    private static let capacity = 64 * 1024

    private let syscall: any Syscall
    private let number: Int32
    private let name = "standard output"
    private let tail: Mutex<Tail>

    /// Writes to `descriptor`, which stays open; `algorithms` are what `verify` will be asked for.
    package init(
        syscall: any Syscall = SystemCalls(), descriptor: Int32 = STDOUT_FILENO,
        algorithms: Set<Checksum.Algorithm> = []
    ) {
        self.syscall = syscall
        number = descriptor
        tail = Mutex(Tail(digests: algorithms.map { ($0, MessageDigest($0)) }))
    }

    package var waitsForReaders: Bool { true }

    /// Only the next byte can be written; any other offset is an error.
    package func write(_ bytes: UnsafeRawBufferPointer, at offset: Int64) throws(TowlineError) {
        try tail.withLock { (tail) throws(TowlineError) in
            guard offset == tail.position else { throw outOfOrder(offset) }
            var done = 0
            while done < bytes.count {
                let count = syscall.write(number, UnsafeRawBufferPointer(rebasing: bytes[done...]))
                if count == -Int(EINTR) { continue }
                if count == -Int(EAGAIN) {
                    _ = syscall.waitUntilWritable(number)
                    continue
                }
                guard count > 0 else { throw .writing(name, count < 0 ? Int32(-count) : EIO) }
                done += count
                tail.take(UnsafeRawBufferPointer(rebasing: bytes[(done - count)..<done]))
            }
        }
    }

    /// Reads within the last 64 KiB.
    package func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) throws(TowlineError) -> Int {
        try tail.withLock { (tail) throws(TowlineError) in
            let start = offset - (tail.position - Int64(tail.bytes.count))
            guard start >= 0, offset <= tail.position else { throw outOfOrder(offset) }
            let bytes = tail.bytes[Int(start)...].prefix(buffer.count)
            buffer.copyBytes(from: bytes)
            return bytes.count
        }
    }

    package func synchronize() async throws(TowlineError) {}

    package func checkIntact() throws(TowlineError) {}

    /// Compares with what went by; the bytes are with the reader already. To be called once, at the end.
    package func verify(_ checksums: [Checksum], length: Int64) async throws(TowlineError) -> [ChecksumMismatch] {
        let values = tail.withLock { tail in
            let values =
                tail.values
                ?? Dictionary(uniqueKeysWithValues: tail.digests.map { ($0.algorithm, $0.digest.finish($0.algorithm)) })
            tail.values = values
            tail.digests = []
            return values
        }
        if let unknown = checksums.first(where: { values[$0.algorithm] == nil }) {
            throw TowlineError(
                .unusableOption,
                "cannot verify the data on \(name): the \(unknown.algorithm.rawValue) checksum was requested after "
                    + "the first byte. Download to a file to verify the data")
        }
        return FileHasher.mismatches(checksums, values)
    }

    package func truncate(to length: Int64) throws(TowlineError) {
        guard tail.withLock({ $0.position }) <= length else { throw outOfOrder(length) }
    }

    /// Nothing is buffered here, so there is nothing to flush.
    package func publish(_ terms: PublishTerms) async throws(TowlineError) -> PublishedFile {
        let position = tail.withLock { $0.position }
        guard position == terms.length else {
            throw TowlineError(
                .diskFailure,
                "the data on \(name) is incomplete: \(position) of \(terms.length) bytes were written. "
                    + "Discard the output and download again")
        }
        return PublishedFile(path: "-", length: terms.length)
    }

    package func setAside() throws(TowlineError) -> String? { nil }
    package func discard() {}
    package func close() {}

    private func outOfOrder(_ offset: Int64) -> TowlineError {
        TowlineError(
            .diskFailure,
            "internal error: byte \(offset) was written to \(name) out of order. Please report this bug",
            systemError: ESPIPE)
    }
}
