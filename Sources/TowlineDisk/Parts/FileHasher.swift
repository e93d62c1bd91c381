import CCrypto
import CTowline
import Glibc
internal import TowlineCore
internal import TowlineEngine
internal import TowlineThreads

/// A checksum computation in progress (message digest), by libcrypto, or by our own code for CRC-32C.
///
/// `@unchecked Sendable`: one owner uses it at a time, the thread that reads a file or the holder of a sink's lock.
final class MessageDigest: @unchecked Sendable {
    private let context: OpaquePointer?
    private var crc: UInt32 = 0

    init(_ algorithm: Checksum.Algorithm) {
        let type: OpaquePointer?
        switch algorithm {
        case .md5: type = EVP_md5()
        case .sha1: type = EVP_sha1()
        case .sha256: type = EVP_sha256()
        case .sha512: type = EVP_sha512()
        case .crc32c: type = nil
        }
        guard let type, let context = EVP_MD_CTX_new() else {
            context = nil
            return
        }
        self.context = context
        EVP_DigestInit_ex(context, type, nil)
    }

    deinit { EVP_MD_CTX_free(context) }

    /// Adds the next bytes of the content to the checksum computation.
    func update(_ bytes: UnsafeRawBufferPointer) {
        if let context {
            EVP_DigestUpdate(context, bytes.baseAddress, bytes.count)
        } else {
            crc = towline_crc32c(crc, bytes.baseAddress, bytes.count)
        }
    }

    /// Ends the computation and returns the checksum, `algorithm.byteCount` bytes. Empty, and so unequal to any
    /// checksum, if libcrypto lacks the algorithm.
    func finish(_ algorithm: Checksum.Algorithm) -> [UInt8] {
        guard let context else {
            guard algorithm == .crc32c else { return [] }
            return withUnsafeBytes(of: crc.bigEndian) { Array($0) }
        }
        var value = [UInt8](repeating: 0, count: Int(EVP_MAX_MD_SIZE))
        var length: UInt32 = 0
        guard EVP_DigestFinal_ex(context, &value, &length) == 1 else { return [] }
        return Array(value.prefix(Int(length)))
    }
}

/// Reads a file once to compute the checksums of any number of algorithms.
enum FileHasher {
    private static let bufferSize = 1 << 20

    /// Returns the checksums that do not match the first `length` bytes; empty if all match. Blocks until the bytes are
    /// read. Throws `cancelled` once `flag` is set, and a disk error if the file is shorter or cannot be read.
    static func mismatches(
        _ checksums: [Checksum], in file: Descriptor, length: Int64, unless flag: CancelFlag
    ) throws(TowlineError) -> [ChecksumMismatch] {
        let algorithms = Array(Set(checksums.map(\.algorithm)))
        let digests = algorithms.map { MessageDigest($0) }
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: bufferSize, alignment: 4096)
        defer { buffer.deallocate() }
        var offset: Int64 = 0
        while offset < length {
            try flag.check(file.path)
            let wanted = Int(min(length - offset, Int64(bufferSize)))
            let count = try file.read(into: UnsafeMutableRawBufferPointer(rebasing: buffer[..<wanted]), at: offset)
            guard count == wanted else { throw TowlineError.reading(file.path, EIO) }
            for digest in digests { digest.update(UnsafeRawBufferPointer(rebasing: buffer[..<wanted])) }
            offset += Int64(wanted)
        }
        var values: [Checksum.Algorithm: [UInt8]] = [:]
        for (algorithm, digest) in zip(algorithms, digests) { values[algorithm] = digest.finish(algorithm) }
        return mismatches(checksums, values)
    }

    /// Returns the expected checksums that do not equal the computed digests in `values`. A missing digest does not
    /// match.
    static func mismatches(
        _ checksums: [Checksum], _ values: [Checksum.Algorithm: [UInt8]]
    ) -> [ChecksumMismatch] {
        checksums.filter { values[$0.algorithm] != $0.value }.map { expected in
            let value = values[expected.algorithm] ?? []
            return ChecksumMismatch(
                expected: expected, found: Checksum(algorithm: expected.algorithm, value: value))
        }
    }
}

/// Computes the checksum of content while its bytes arrive, and compares it with the expected one.
final class DigestContentHasher: ContentHasher {
    private let checksum: Checksum
    private let digest: MessageDigest

    init(_ checksum: Checksum) {
        self.checksum = checksum
        digest = MessageDigest(checksum.algorithm)
    }

    func update(_ bytes: UnsafeRawBufferPointer) { digest.update(bytes) }
    func matches() -> Bool { digest.finish(checksum.algorithm) == checksum.value }
}
