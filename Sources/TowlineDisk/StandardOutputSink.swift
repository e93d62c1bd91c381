import Glibc
import Synchronization
package import TowlineCore
package import TowlineEngine

/// The sink that is a pipe or a terminal (`-o -`): bytes in order, nothing to take back, nothing to make durable.
package final class StandardOutputSink: Sink {
    private struct Tail {
        var position: Int64 = 0
        /// The last bytes written, for comparing an overlap; at most `capacity`.
        var bytes: [UInt8] = []
        /// Hashes what went out: it cannot be read again.
        var digests: [Checksum.Algorithm: MessageDigest] = [:]
    }

    private static let capacity = 64 * 1024

    private let syscall: any Syscall
    private let number: Int32
    private let name = "standard output"
    private let tail = Mutex(Tail())

    /// Writes to `descriptor`, which stays open, and hashes on the way with the algorithms given.
    package init(
        syscall: any Syscall = SystemCalls(), descriptor: Int32 = STDOUT_FILENO,
        digesting algorithms: [Checksum.Algorithm] = []
    ) {
        self.syscall = syscall
        number = descriptor
        for algorithm in algorithms { tail.withLock { $0.digests[algorithm] = MessageDigest(algorithm) } }
    }

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
                let written = UnsafeRawBufferPointer(rebasing: bytes[done..<(done + count)])
                for digest in tail.digests.values { digest.update(written) }
                done += count
                tail.position += Int64(count)
                tail.bytes.append(contentsOf: bytes[(done - count)..<done].suffix(StandardOutputSink.capacity))
                if tail.bytes.count > 2 * StandardOutputSink.capacity {
                    tail.bytes.removeFirst(tail.bytes.count - StandardOutputSink.capacity)
                }
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

    /// What went down a pipe cannot be read again: a checksum whose algorithm was not named at the start counts as
    /// not matching.
    package func verify(_ checksums: [Checksum], length: Int64) async throws(TowlineError) -> [Checksum] {
        tail.withLock { tail in
            checksums.filter { tail.digests.removeValue(forKey: $0.algorithm)?.finish($0.algorithm) != $0.value }
        }
    }

    package func truncate(to length: Int64) throws(TowlineError) {
        guard tail.withLock({ $0.position }) <= length else { throw outOfOrder(length) }
    }

    /// Nothing is buffered here, so there is nothing to flush.
    package func publish(_ terms: PublishTerms) async throws(TowlineError) -> PublishedFile {
        let position = tail.withLock { $0.position }
        guard position == terms.length else {
            throw TowlineError(.diskFailure, "\(name) got \(position) of \(terms.length) bytes")
        }
        return PublishedFile(path: "-", length: terms.length)
    }

    package func setAside() throws(TowlineError) {}
    package func discard() {}
    package func close() {}

    private func outOfOrder(_ offset: Int64) -> TowlineError {
        TowlineError(.diskFailure, "\(name) takes bytes in order only; byte \(offset) is not next", systemError: ESPIPE)
    }
}
