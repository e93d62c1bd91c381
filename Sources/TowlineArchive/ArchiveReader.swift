import CUnpack
import Glibc
internal import TowlineCore
internal import TowlineThreads

/// A reader of the entries of an archive, with a confined child process (`CUnpack`). Used on one thread.
///
/// Only the necessary formats are enabled: tar and zip, plain or in one layer of gzip, xz or zstd. Filters that
/// libarchive runs as separate programs are disabled. Several layers of compression are refused, because each
/// layer multiplies the cost of a few bytes.
final class ArchiveReader {
    /// The type of an entry.
    enum Kind: Hashable {
        case file(isExecutable: Bool)
        case directory
        case symbolicLink([UInt8])
        case hardLink([UInt8])
        /// A device, a FIFO, a socket, or an unknown type.
        case other
    }

    /// The description of an entry, which precedes its bytes.
    struct Head {
        let path: [UInt8]
        let kind: Kind
        /// The declared size in bytes, which is not trusted. No space is reserved for this size.
        let size: Int64
        let modified: Int?
        /// The bytes of the decompressed archive up to the entry's data, with all headers.
        let stream: Int64
    }

    /// The memory limit of the child process in bytes: the largest common window of xz and zstd, and the buffers of
    /// libarchive.
    static let memory: Int64 = 256 << 20

    let path: String
    /// The size of the archive in bytes.
    let length: Int64
    private let flag: CancelFlag
    private let limits: UnpackLimits
    /// The number of bytes that the child has sent.
    private var received: Int64 = 0
    private let isEmptyZip: Bool
    /// The child process and the pipe that it writes to; `nil` for an empty zip file.
    private let child: (process: Int32, output: Int32)?
    /// The bytes of the last frame.
    private let buffer: UnsafeMutableRawBufferPointer

    /// Starts to read the archive `name` in the open directory `folder`. `path` names the archive in messages.
    ///
    /// - Throws: `archiveDamaged` if the path is not a file; an error of the disk.
    init(
        _ path: String, in folder: Int32, named name: String, limits: UnpackLimits, _ flag: CancelFlag
    ) throws(TowlineError) {
        self.path = path
        self.limits = limits
        self.flag = flag
        let descriptor = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else { throw .unpacking("cannot open", path, errno) }
        defer { Glibc.close(descriptor) }
        var status = stat()
        guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
            throw .damaged(
                path,
                "the downloaded archive was not unpacked because it is now a directory or a device, not a file. "
                    + "Download the archive again")
        }
        length = Int64(status.st_size)
        isEmptyZip = Self.isEmptyZip(descriptor, length)
        var output: Int32 = -1
        let process = isEmptyZip ? 0 : towline_unpack_start(descriptor, Self.memory, &output)
        guard process >= 0 else { throw .unpacking("cannot start a process that reads", path, -process) }
        child = isEmptyZip ? nil : (process, output)
        buffer = .allocate(byteCount: Int(TOWLINE_UNPACK_BYTES), alignment: 8)
    }

    deinit {
        buffer.deallocate()
        guard let child else { return }
        Glibc.close(child.output)
        kill(child.process, SIGKILL)
        _ = Self.wait(child.process)
    }

    /// Starts a child that tests whether the kernel enforces its limits. Returns false if the kernel does not.
    static var isConfined: Bool {
        let descriptor = open("/dev/null", O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return false }
        defer { Glibc.close(descriptor) }
        var output: Int32 = -1
        let process = towline_unpack_start(descriptor, 0, &output)
        guard process > 0 else { return false }
        defer { _ = wait(process) }
        defer { Glibc.close(output) }
        var frame = towline_unpack_frame()
        let size = MemoryLayout.size(ofValue: frame)
        return Glibc.read(output, &frame, size) == size && Int(frame.kind) == TOWLINE_UNPACK_END
    }

    /// Returns whether the file is an empty zip file: an end record only, which libarchive does not recognize.
    private static func isEmptyZip(_ descriptor: Int32, _ length: Int64) -> Bool {
        let record: [UInt8] = [0x50, 0x4B, 5, 6] + [UInt8](repeating: 0, count: 18)
        guard length == record.count else { return false }
        var bytes = [UInt8](repeating: 0xFF, count: record.count)
        return pread(descriptor, &bytes, bytes.count, 0) == bytes.count && bytes == record
    }

    /// Returns the next entry, or `nil` at the end of the archive.
    func next() throws(TowlineError) -> Head? {
        if isEmptyZip { return nil }
        let frame = try receiveFrame()
        switch Int(frame.kind) {
        case TOWLINE_UNPACK_HEAD: break
        case TOWLINE_UNPACK_END: return nil
        default: throw unexpected()
        }
        let bytes = buffer[..<Int(frame.path + frame.target)]
        let (name, target) = (Array(bytes.prefix(Int(frame.path))), Array(bytes.dropFirst(Int(frame.path))))
        let kind: Kind =
            switch Int(frame.detail) {
            case TOWLINE_UNPACK_FILE: .file(isExecutable: false)
            case TOWLINE_UNPACK_PROGRAM: .file(isExecutable: true)
            case TOWLINE_UNPACK_DIRECTORY: .directory
            case TOWLINE_UNPACK_SYMBOLIC_LINK: .symbolicLink(target)
            case TOWLINE_UNPACK_HARD_LINK: .hardLink(target)
            default: .other
            }
        return Head(
            path: name, kind: kind, size: frame.number, modified: frame.has_time == 0 ? nil : Int(frame.time),
            stream: frame.stream)
    }

    /// Reads all bytes of the current entry. Calls `body` with each block and its offset in the entry.
    func read(_ body: (UnsafeRawBufferPointer, Int64) throws(TowlineError) -> Void) throws(TowlineError) {
        while true {
            let frame = try receiveFrame()
            switch Int(frame.kind) {
            case TOWLINE_UNPACK_DATA:
                try body(UnsafeRawBufferPointer(rebasing: buffer[..<Int(frame.path)]), frame.number)
            case TOWLINE_UNPACK_END_OF_ENTRY: return
            default: throw unexpected()
            }
        }
    }

    // MARK: Frames

    /// Receives a frame, and stores its bytes in `buffer`.
    ///
    /// - Throws: the error that the child reports; `archiveDamaged` if the child ended early; `cancelled`.
    private func receiveFrame() throws(TowlineError) -> towline_unpack_frame {
        var frame = towline_unpack_frame()
        let size = MemoryLayout.size(ofValue: frame)
        try checkProcessorTime()
        try receive(into: UnsafeMutableRawBufferPointer(rebasing: buffer[..<size]))
        withUnsafeMutableBytes(of: &frame) { $0.copyMemory(from: UnsafeRawBufferPointer(rebasing: buffer[..<size])) }
        // The child parses hostile bytes: it may send anything.
        let (count, overflow) = frame.path.addingReportingOverflow(frame.target)
        guard !overflow, count <= buffer.count else { throw unexpected() }
        try receive(into: UnsafeMutableRawBufferPointer(rebasing: buffer[..<Int(count)]))
        if Int(frame.kind) == TOWLINE_UNPACK_ERROR { throw reported(frame) }
        return frame
    }

    private func receive(into bytes: UnsafeMutableRawBufferPointer) throws(TowlineError) {
        var rest = bytes[...]
        while !rest.isEmpty {
            try flag.check(path)
            guard let output = child?.output else { throw unexpected() }
            var watched = pollfd(fd: output, events: Int16(POLLIN), revents: 0)
            // The child may need a long time for the next byte. The timeout lets the loop check for cancellation.
            guard poll(&watched, 1, 200) > 0 else {
                try checkProcessorTime()
                continue
            }
            let count = Glibc.read(output, UnsafeMutableRawBufferPointer(rebasing: rest).baseAddress, rest.count)
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { throw unexpected() }
            rest = rest.dropFirst(count)
            received += Int64(count)
        }
    }

    /// Throws `archiveRefused` if the child used more CPU time than the archive and the received bytes allow. A few
    /// bytes can keep a decompressor busy for hours.
    private func checkProcessorTime() throws(TowlineError) {
        var clock = clockid_t()
        var time = timespec()
        guard let process = child?.process, clock_getcpuclockid(process, &clock) == 0,
            clock_gettime(clock, &time) == 0
        else { return }
        let used = Duration.seconds(time.tv_sec) + .nanoseconds(time.tv_nsec)
        guard used > limits.processorTime + limits.processorTimePerMiB * Int((length + received) >> 20) else { return }
        throw .refusing(
            path,
            "the downloaded archive was not unpacked because reading it takes too much CPU time for its size. If you "
                + "trust the archive, unpack it with another program")
    }

    private func reported(_ frame: towline_unpack_frame) -> TowlineError {
        let notUnpacked = "the downloaded archive was not unpacked"
        switch Int(frame.detail) {
        case TOWLINE_UNPACK_ENCRYPTED:
            return .refusing(
                path,
                "\(notUnpacked) because it is encrypted, which is not supported. Unpack it with another program")
        case TOWLINE_UNPACK_NO_NAME:
            return .refusing(
                path,
                "\(notUnpacked) because it contains a file whose name cannot be read. Unpack it with another program")
        case TOWLINE_UNPACK_LAYERS:
            return .refusing(
                path,
                "\(notUnpacked) because it is compressed more than once, which is not supported. "
                    + "Unpack it with another program")
        case TOWLINE_UNPACK_UNSUPPORTED:
            return .damaged(
                path,
                "\(notUnpacked) because the libarchive on this machine does not support all of gzip, xz, zstd, tar and "
                    + "zip. Install a complete libarchive and try again")
        case TOWLINE_UNPACK_MEMORY:
            let limit = ByteCountText.format(Self.memory)
            return .refusing(
                path,
                "\(notUnpacked) because reading it needs more than \(limit) of memory. If you trust the archive, unpack "
                    + "it with another program")
        default:
            let reason = String(decoding: buffer[..<Int(frame.path)], as: UTF8.self).prefix { !$0.isNewline }
            guard !reason.isEmpty else {
                return .damaged(
                    path,
                    "\(notUnpacked) because it is damaged or its format is unknown. "
                        + "Download the archive again, or unpack it with another program")
            }
            let line = TerminalSafeText.make(String(reason), width: 200)
            return .damaged(path, "\(notUnpacked): \(line). The archive may be damaged: download it again")
        }
    }

    /// Returns the error for a child that ended early or sent an unexpected frame.
    private func unexpected() -> TowlineError {
        .damaged(
            path,
            "the downloaded archive was not unpacked because the process that reads it failed. The archive may be "
                + "damaged or malicious: download it again from a source that you trust")
    }

    private static func wait(_ process: Int32) -> Int32 {
        var status: Int32 = 0
        while waitpid(process, &status, 0) < 0, errno == EINTR {}
        return status
    }
}
