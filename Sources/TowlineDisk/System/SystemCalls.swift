import CTowline
import Glibc
internal import TowlineCore

/// The implementation of `Syscall` that calls the operating system.
///
/// File names are passed as the bytes that they represent (`ByteText`).
package final class SystemCalls: Syscall {
    /// Creates an object that calls the operating system; it has no state.
    package init() {}

    private func result(_ value: Int32) -> Int32 { value < 0 ? -errno : value }
    private func result(_ value: Int) -> Int { value < 0 ? -Int(errno) : value }

    package func openat(_ directory: Int32, _ path: String, _ flags: Int32, _ mode: UInt32) -> Int32 {
        ByteText.withCString(path) { result(Glibc.openat(directory, $0, flags, mode_t(mode))) }
    }

    package func openUnnamed(_ directory: Int32, _ mode: UInt32) -> Int32 { towline_open_unnamed(directory, mode) }

    package func name(_ descriptor: Int32, _ directory: Int32, _ name: String) -> Int32 {
        ByteText.withCString(name) { towline_name(descriptor, directory, $0) }
    }

    package func close(_ descriptor: Int32) -> Int32 { result(Glibc.close(descriptor)) }

    package func pwrite(_ descriptor: Int32, _ bytes: UnsafeRawBufferPointer, _ offset: Int64) -> Int {
        result(Glibc.pwrite(descriptor, bytes.baseAddress, bytes.count, off_t(offset)))
    }

    package func splice(_ descriptor: Int32, _ pipe: Int32, _ count: Int, _ offset: Int64) -> Int {
        Int(towline_write_from_pipe(descriptor, pipe, count, offset))
    }

    package func pread(_ descriptor: Int32, _ buffer: UnsafeMutableRawBufferPointer, _ offset: Int64) -> Int {
        result(Glibc.pread(descriptor, buffer.baseAddress, buffer.count, off_t(offset)))
    }

    package func write(_ descriptor: Int32, _ bytes: UnsafeRawBufferPointer) -> Int {
        result(Glibc.write(descriptor, bytes.baseAddress, bytes.count))
    }

    package func waitUntilWritable(_ descriptor: Int32) -> Int32 {
        var request = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
        return result(poll(&request, 1, -1))
    }

    package func fdatasync(_ descriptor: Int32) -> Int32 { result(Glibc.fdatasync(descriptor)) }
    package func fsync(_ descriptor: Int32) -> Int32 { result(Glibc.fsync(descriptor)) }
    package func syncfs(_ descriptor: Int32) -> Int32 { towline_syncfs(descriptor) }
    package func startWriteback(_ descriptor: Int32) -> Int32 { towline_start_writeback(descriptor) }
    package func waitForWriteback(_ descriptor: Int32) -> Int32 { towline_wait_for_writeback(descriptor) }

    package func ftruncate(_ descriptor: Int32, _ length: Int64) -> Int32 {
        result(Glibc.ftruncate(descriptor, off_t(length)))
    }

    package func fallocate(_ descriptor: Int32, _ offset: Int64, _ length: Int64) -> Int32 {
        towline_fallocate(descriptor, 0, offset, length)
    }

    package func status(_ directory: Int32, _ path: String, _ status: inout FileStatus) -> Int32 {
        var raw = towline_status()
        let code = ByteText.withCString(path) { towline_statx(directory, $0, &raw) }
        guard code >= 0 else { return code }
        switch raw.mode & UInt32(S_IFMT) {
        case UInt32(S_IFREG): status.kind = .regular
        case UInt32(S_IFDIR): status.kind = .directory
        case UInt32(S_IFLNK): status.kind = .link
        default: status.kind = .other
        }
        status.identity.device = raw.device
        status.identity.inode = raw.inode
        status.identity.birthSeconds = raw.birth_seconds
        status.identity.birthNanoseconds = raw.birth_nanoseconds
        status.size = raw.size
        status.modifiedSeconds = raw.modified_seconds
        status.modifiedNanoseconds = raw.modified_nanoseconds
        status.changed = .seconds(raw.changed_seconds) + .nanoseconds(Int64(raw.changed_nanoseconds))
        status.links = raw.links
        status.owner = raw.owner
        status.mode = raw.mode & 0o7777
        status.allocated = Int64(clamping: raw.blocks).multipliedReportingOverflow(by: 512).partialValue
        return 0
    }

    package func space(_ descriptor: Int32, _ space: inout FileSystemSpace) -> Int32 {
        var raw = towline_space()
        let code = towline_fstatfs(descriptor, &raw)
        guard code >= 0 else { return code }
        space.available = raw.available
        space.total = raw.total
        space.type = raw.type
        return 0
    }

    package func lock(_ descriptor: Int32) -> Int32 { towline_lock(descriptor) }

    package func rename(_ directory: Int32, _ from: String, _ to: String, keeps: Bool) -> Int32 {
        ByteText.withCString(from) { from in
            ByteText.withCString(to) { towline_rename(directory, from, directory, $0, keeps ? 1 : 0) }
        }
    }

    package func link(_ directory: Int32, _ from: String, _ to: String) -> Int32 {
        ByteText.withCString(from) { from in
            ByteText.withCString(to) { result(linkat(directory, from, directory, $0, 0)) }
        }
    }

    package func unlink(_ directory: Int32, _ path: String) -> Int32 {
        ByteText.withCString(path) { result(unlinkat(directory, $0, 0)) }
    }

    package func setAttribute(_ descriptor: Int32, _ name: String, _ value: UnsafeRawBufferPointer) -> Int32 {
        name.withCString { towline_fsetxattr(descriptor, $0, value.baseAddress, value.count) }
    }

    package func getAttribute(_ descriptor: Int32, _ name: String, _ value: UnsafeMutableRawBufferPointer) -> Int {
        Int(towline_fgetxattr(descriptor, name, value.baseAddress, value.count))
    }

    package func seek(_ descriptor: Int32, _ offset: Int64, toHole: Bool) -> Int64 {
        towline_seek(descriptor, offset, toHole ? 1 : 0)
    }

    package func setModified(_ descriptor: Int32, _ seconds: Int64) -> Int32 {
        // UTIME_OMIT of <sys/stat.h>: the access time does not change.
        withUnsafeTemporaryAllocation(of: timespec.self, capacity: 2) { times in
            times[0] = timespec(tv_sec: 0, tv_nsec: (1 << 30) - 2)
            times[1] = timespec(tv_sec: Int(seconds), tv_nsec: 0)
            return result(futimens(descriptor, times.baseAddress))
        }
    }

    package func setMode(_ descriptor: Int32, _ mode: UInt32) -> Int32 { result(fchmod(descriptor, mode_t(mode))) }

    package func names(_ directory: Int32, _ names: inout [String]) -> Int32 {
        // A separate descriptor: reading moves its position, and closedir(3) closes it.
        let own = Glibc.openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard own >= 0 else { return -errno }
        guard let stream = fdopendir(own) else {
            let code = -errno
            _ = Glibc.close(own)
            return code
        }
        defer { closedir(stream) }
        while let entry = readdir(stream) {
            let name = withUnsafeBytes(of: &entry.pointee.d_name) { bytes in
                ByteText.decode(Array(UnsafeRawBufferPointer(rebasing: bytes.prefix { $0 != 0 })))
            }
            names.append(name)
        }
        return 0
    }
}
