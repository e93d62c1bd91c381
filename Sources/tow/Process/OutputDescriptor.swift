import Glibc

/// A descriptor for text output. After a failed write, for example because the reader has exited, it discards all text:
/// output that is not read must not stop a download.
struct OutputDescriptor {
    private let descriptor: Int32
    private(set) var isBroken = false

    init(_ descriptor: Int32) { self.descriptor = descriptor }

    /// Writes the whole text and waits for a slow reader.
    mutating func write(_ text: String) {
        guard !isBroken, !text.isEmpty else { return }
        var text = text
        let succeeded = text.withUTF8 { Self.writeAll(UnsafeRawBufferPointer($0), to: descriptor) }
        if !succeeded { isBroken = true }
    }

    /// Writes all bytes and waits for a slow reader. Returns `false` with `errno` set if some were not written.
    static func writeAll(_ bytes: [UInt8], to descriptor: Int32) -> Bool {
        bytes.withUnsafeBytes { writeAll($0, to: descriptor) }
    }

    private static func writeAll(_ bytes: UnsafeRawBufferPointer, to descriptor: Int32) -> Bool {
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = Glibc.write(descriptor, UnsafeRawBufferPointer(rebasing: rest).baseAddress, rest.count)
            if count > 0 {
                rest = rest.dropFirst(count)
            } else if errno == EAGAIN {
                // Another program that shares the terminal made it non-blocking.
                var entry = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
                _ = poll(&entry, 1, 1000)
            } else if errno != EINTR {
                return false
            }
        }
        return true
    }
}

/// The setup of descriptors, signals and limits of this process.
enum ProcessSetup {
    /// Opens each of the descriptors 0, 1 and 2 that is closed. Otherwise, the next opened file would get its number,
    /// and a message would be written into a download. 1 and 2 are opened read-only, so that writing to them still
    /// fails.
    static func occupyStandardDescriptors() {
        for descriptor: Int32 in 0...2 where fcntl(descriptor, F_GETFD) == -1 && errno == EBADF {
            // `open` returns the lowest free number, which is this one. Standard input is write-only, so that a read
            // fails as before and does not look like an empty list.
            _ = open("/dev/null", descriptor == 0 ? O_WRONLY : O_RDONLY)
        }
    }

    /// Makes a write to a pipe without a reader, or beyond the file size limit, fail instead of ending the process.
    static func ignoreWriteSignals() {
        signal(SIGPIPE, SIG_IGN)
        signal(SIGXFSZ, SIG_IGN)
    }

    /// Raises the limit of descriptors to the hard limit: many connections need more than the usual 1024.
    ///
    /// - Returns: the maximum number of descriptors.
    static func raiseDescriptorLimit() -> Int {
        var limit = rlimit()
        guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { return 1024 }
        let before = limit.rlim_cur
        limit.rlim_cur = limit.rlim_max
        let isRaised = setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0
        return Int(clamping: isRaised ? limit.rlim_max : before)
    }
}
