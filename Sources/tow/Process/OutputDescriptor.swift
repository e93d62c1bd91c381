import Glibc

/// A descriptor that text is written to. One that is closed, or whose reader is gone, swallows everything from then
/// on: what nobody reads is no reason to stop a download.
struct OutputDescriptor {
    private let descriptor: Int32
    private(set) var isBroken = false

    init(_ descriptor: Int32) { self.descriptor = descriptor }

    /// Writes all of it, waiting for a slow reader.
    mutating func write(_ text: String) {
        guard !isBroken, !text.isEmpty else { return }
        var text = text
        let succeeded = text.withUTF8 { Self.writeAll(UnsafeRawBufferPointer($0), to: descriptor) }
        if !succeeded { isBroken = true }
    }

    /// - Returns: `false` with `errno` set if not all of the bytes were written.
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
                // Somebody who shares the terminal made it non-blocking.
                var entry = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
                _ = poll(&entry, 1, 1000)
            } else if errno != EINTR {
                return false
            }
        }
        return true
    }
}

/// What the process was started with.
enum ProcessSetup {
    /// Opens what is closed of the descriptors 0, 1 and 2: the next file opened would get that number, and a message
    /// would end up in somebody's download. Opened for reading only, so that writing fails as it did.
    static func occupyStandardDescriptors() {
        for descriptor: Int32 in 0...2 where fcntl(descriptor, F_GETFD) == -1 && errno == EBADF {
            // The lowest free number is the one just found closed.
            // A read from a closed standard input fails then, and does not look like an empty list.
            _ = open("/dev/null", descriptor == 0 ? O_WRONLY : O_RDONLY)
        }
    }

    /// A write to a pipe without reader, and one beyond the file size limit, fail instead of ending the process.
    static func ignoreWriteSignals() {
        signal(SIGPIPE, SIG_IGN)
        signal(SIGXFSZ, SIG_IGN)
    }

    /// As many descriptors as the hard limit allows: many connections need more than the customary 1024.
    ///
    /// - Returns: how many there are.
    static func raiseDescriptorLimit() -> Int {
        var limit = rlimit()
        guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { return 1024 }
        let before = limit.rlim_cur
        limit.rlim_cur = limit.rlim_max
        let isRaised = setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0
        return Int(clamping: isRaised ? limit.rlim_max : before)
    }

    /// Beyond the first three, nothing that this process was given is for programs that it starts: whoever waits for
    /// the other end of a pipe or a socket would wait for as long as they run.
    static func keepDescriptors() {
        guard let folder = opendir("/proc/self/fd") else { return }
        defer { closedir(folder) }
        while let entry = readdir(folder) {
            let name = withUnsafeBytes(of: entry.pointee.d_name) {
                String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self)
            }
            if let descriptor = Int32(name), descriptor > STDERR_FILENO { _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC) }
        }
    }
}
