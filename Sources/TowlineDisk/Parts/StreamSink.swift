import Glibc
import Synchronization
package import TowlineCore
package import TowlineEngine
internal import TowlineThreads

/// The output of a download to standard output, another file descriptor, a FIFO or a device. Accepts the bytes in
/// order, once.
///
/// Syncs a block device at the end. Pipes and terminals have no durable state.
package final class StreamSink: Sink {
    /// The last bytes that were written to the stream and the digests of all bytes, because a stream cannot be read
    /// again.
    private struct Tail {
        var position: Int64 = 0
        /// The last bytes written, for comparison with bytes that a resumed transfer fetches again: at least `capacity`
        /// bytes, or all bytes of a shorter output.
        var bytes: [UInt8] = []
        /// Digests of all bytes written so far, computed during the writes because a stream cannot be read again.
        var digests: [(algorithm: Checksum.Algorithm, digest: MessageDigest)]
        /// The checksums of all written bytes, computed by `verify`; `nil` before it is called.
        var values: [Checksum.Algorithm: [UInt8]]?

        mutating func take(_ new: UnsafeRawBufferPointer) {
            position += Int64(new.count)
            for entry in digests { entry.digest.update(new) }
            if new.count >= StreamSink.capacity {
                bytes = Array(new.suffix(StreamSink.capacity))
            } else {
                bytes += new
                if bytes.count > 2 * StreamSink.capacity {
                    bytes.removeFirst(bytes.count - StreamSink.capacity)
                }
            }
        }
    }

    private static let capacity = 64 * 1024

    private let syscall: any Syscall
    private let output: StreamOutput
    private let name: String
    private let tail: Mutex<Tail>
    /// The open FIFO or device of `StreamOutput.path`; `nil` while it is closed, and always if `output` is a
    /// descriptor.
    private let opened = Mutex<Descriptor?>(nil)

    /// Opens `output`. If it is a descriptor of this process, `close` leaves it open.
    ///
    /// - Parameter algorithms: the checksum algorithms that `verify` will need.
    /// - Throws: the error if a device cannot be opened. A FIFO that no process reads is opened by the first write,
    ///   which waits for a reader.
    package init(
        syscall: any Syscall = SystemCalls(), output: StreamOutput = .descriptor(STDOUT_FILENO),
        algorithms: Set<Checksum.Algorithm> = []
    ) throws(TowlineError) {
        self.syscall = syscall
        self.output = output
        name =
            switch output {
            case .descriptor(STDOUT_FILENO): "standard output"
            case .descriptor(let number): "/dev/fd/\(number)"
            case .path(let path): path
            }
        tail = Mutex(Tail(digests: algorithms.map { ($0, MessageDigest($0)) }))
        if case .path(let path) = output {
            let file = try open(path, flags: O_NONBLOCK)
            opened.withLock { $0 = file }
        }
    }

    /// Opens the FIFO or device at a path for writing. Throws `destinationExists` if it is another kind of file.
    /// - Returns: `nil` with O_NONBLOCK if the path is a FIFO that no process reads (fifo(7)).
    private func open(_ path: String, flags: Int32) throws(TowlineError) -> Descriptor? {
        var code: Int32
        repeat {
            code = syscall.openat(AT_FDCWD, path, O_WRONLY | O_NOCTTY | O_CLOEXEC | flags, 0)
        } while code == -EINTR
        if code == -ENXIO, flags & O_NONBLOCK != 0 {
            var status = FileStatus()
            // A link may lead to a FIFO.
            let code = syscall.status(AT_FDCWD, path, &status)
            if code >= 0, status.kind == .other || status.kind == .link { return nil }
        }
        guard code >= 0 else { throw .opening(path, -code) }
        let file = Descriptor(code, path: path, syscall: syscall)
        // A regular file that was created meanwhile would be overwritten in place.
        guard try file.status().kind == .other else { throw .occupied(path) }
        return file
    }

    /// Calls `body` with the file descriptor's number. First opens the path if it is not open yet, which waits for a
    /// process that reads the FIFO.
    private func withNumber<Value>(_ body: (Int32) throws(TowlineError) -> Value) throws(TowlineError) -> Value {
        switch output {
        case .descriptor(let number): return try body(number)
        case .path(let path):
            let file: Descriptor
            if let known = opened.withLock({ $0 }) {
                file = known
            } else {
                guard let now = try open(path, flags: 0) else { throw .opening(path, ENXIO) }
                opened.withLock { $0 = now }
                file = now
            }
            let number = try file.acquire()
            defer { file.release() }
            return try body(number)
        }
    }

    package var waitsForReaders: Bool { true }

    /// Writes the next bytes in order. Throws `diskFailure` for any offset except the current position.
    package func write(_ bytes: UnsafeRawBufferPointer, at offset: Int64) throws(TowlineError) {
        try tail.withLock { (tail) throws(TowlineError) in
            guard offset == tail.position else { throw outOfOrder(offset) }
            try withNumber { (number) throws(TowlineError) in try write(bytes, to: number, &tail) }
        }
    }

    private func write(
        _ bytes: UnsafeRawBufferPointer, to number: Int32, _ tail: inout Tail
    ) throws(TowlineError) {
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

    /// Reads bytes at `offset` from the copy of the last 64 KiB in memory, and returns their number. Throws
    /// `diskFailure` for an offset before that copy or after the written bytes.
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

    /// Returns the checksums that do not match the bytes written, which the reader of the stream already has. Must be
    /// called once, at the end. Throws `unusableOption` for an algorithm that was not given to `init`.
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

    /// Syncs a block device and closes the FIFO or device that this sink opened. Throws `diskFailure` if fewer or more
    /// than `terms.length` bytes were written. The sink has no buffer to flush.
    package func publish(_ terms: PublishTerms) async throws(TowlineError) -> PublishedFile {
        let position = tail.withLock { $0.position }
        guard position == terms.length else {
            throw TowlineError(
                .diskFailure,
                "the data on \(name) is incomplete: \(position) of \(terms.length) bytes were written. "
                    + "Discard the output and download again")
        }
        let isStandard = output == .descriptor(STDOUT_FILENO)
        if case .path = output {
            // If no byte was written, this opens the FIFO, so that its reader sees the end of an empty file, too.
            try await WorkThread.run { _ throws(TowlineError) in
                let code = try self.withNumber { self.syscall.fdatasync($0) }
                // Devices and pipes without a cache (fdatasync(2)).
                guard code >= 0 || [EINVAL, EROFS, ENOSYS, EOPNOTSUPP].contains(-code) else {
                    throw .synchronizing(self.name, -code)
                }
            }
        }
        close()
        return PublishedFile(path: isStandard ? "-" : name, length: terms.length)
    }

    package func setAside() throws(TowlineError) -> String? { nil }
    package func discard() { close() }
    package func close() { opened.withLock { $0?.close() } }

    private func outOfOrder(_ offset: Int64) -> TowlineError {
        TowlineError(
            .diskFailure,
            "internal error: byte \(offset) was written to \(name) out of order. Please report this bug",
            systemError: ESPIPE)
    }
}
