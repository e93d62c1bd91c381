internal import TowlineCore

extension Descriptor {
    /// Copies the first `length` bytes, the permission bits, the modification time and the mark of another file to this
    /// one, and syncs it.
    func take(_ other: Descriptor, length: Int64) throws(TowlineError) {
        var offset: Int64 = 0
        while offset < length {
            let bytes = try other.read(Int(min(1 << 20, length - offset)), at: offset)
            guard !bytes.isEmpty else { break }
            try write(bytes, at: offset)
            offset += Int64(bytes.count)
        }
        let status = try other.status()
        // Errors are ignored: a file system may not support these attributes, and the original did without them, too.
        _ = try call { syscall.setMode($0, status.mode) }
        _ = try call { syscall.setModified($0, status.modifiedSeconds) }
        FinishedMark.copy(from: other, to: self)
        try synchronizeAll()
    }
}
