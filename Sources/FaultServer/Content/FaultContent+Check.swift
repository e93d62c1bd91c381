import Glibc

/// The reason why a file could not be checked.
package enum ContentCheckError: Error, Equatable {
    /// `open` failed, with its errno.
    case open(CInt)
    /// `pread` failed, with its errno.
    case read(CInt)
}

extension FaultContent {
    /// Returns the offset of the first byte of `range` at which the file differs from this content, or the end of the
    /// file if it is before the end of the range. `nil` if the range is correct.
    package func firstMismatch(inFile path: String, range: Range<Int64>) throws -> Int64? {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { throw ContentCheckError.open(errno) }
        defer { close(descriptor) }
        return try firstMismatch(inDescriptor: descriptor, range: range)
    }

    /// Checks a whole file like ``firstMismatch(inFile:range:)``. A longer file differs at `length`.
    package func firstMismatch(inFile path: String, length: Int64) throws -> Int64? {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { throw ContentCheckError.open(errno) }
        defer { close(descriptor) }
        if let offset = try firstMismatch(inDescriptor: descriptor, range: 0..<length) { return offset }
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { throw ContentCheckError.read(errno) }
        return Int64(status.st_size) == length ? nil : length
    }

    /// Returns whether a file exists and has exactly the first `length` bytes of the content.
    package func matches(file path: String, length: Int64) -> Bool {
        do { return try firstMismatch(inFile: path, length: length) == nil } catch { return false }
    }

    /// Checks an open file like ``firstMismatch(inFile:range:)``.
    package func firstMismatch(inDescriptor descriptor: CInt, range: Range<Int64>) throws -> Int64? {
        let step = 1 << 20
        let found = UnsafeMutableRawBufferPointer.allocate(byteCount: step, alignment: 16)
        let right = UnsafeMutableRawBufferPointer.allocate(byteCount: step, alignment: 16)
        defer {
            found.deallocate()
            right.deallocate()
        }
        var offset = range.lowerBound
        while offset < range.upperBound {
            let asked = Int(min(Int64(step), range.upperBound - offset))
            let count = pread(descriptor, found.baseAddress, asked, off_t(offset))
            guard count >= 0 else { throw ContentCheckError.read(errno) }
            guard count > 0 else { return offset }
            fill(UnsafeMutableRawBufferPointer(rebasing: right[..<count]), at: offset)
            if let place = FaultContent.firstDifference(
                UnsafeRawBufferPointer(found), UnsafeRawBufferPointer(right), count)
            {
                return offset + Int64(place)
            }
            offset += Int64(count)
        }
        return nil
    }

    /// Returns the offset of the first byte that differs from this content, if `bytes` begin at `offset`; `nil` if all
    /// bytes are correct.
    package func firstMismatch(in bytes: [UInt8], at offset: Int64) -> Int64? {
        let right = self.bytes(in: offset..<offset + Int64(bytes.count))
        return bytes.withUnsafeBytes { left in
            right.withUnsafeBytes { FaultContent.firstDifference(left, $0, bytes.count) }
        }.map { offset + Int64($0) }
    }

    private static func firstDifference(
        _ left: UnsafeRawBufferPointer, _ right: UnsafeRawBufferPointer, _ count: Int
    ) -> Int? {
        guard count > 0, let leftStart = left.baseAddress, let rightStart = right.baseAddress else { return nil }
        if memcmp(leftStart, rightStart, count) == 0 { return nil }
        return (0..<count).first { left[$0] != right[$0] }
    }
}
