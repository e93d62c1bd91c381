import Glibc
import Synchronization
import TowlineDisk

/// An implementation of the system calls that counts them and applies a `Strike`.
final class StrikingSyscall: Syscall {
    private let base = SystemCalls()
    private let strike: Strike
    private let count = Atomic<Int>(0)

    init(_ strike: Strike) { self.strike = strike }

    /// The number of calls that moved bytes from a pipe.
    var splices: Int { spliceCount.load(ordering: .relaxed) }
    private let spliceCount = Atomic<Int>(0)

    var calls: Int { count.load(ordering: .relaxed) }

    /// Counts a call without bytes, and runs `body` unless the call must fail.
    private func run<Number: SignedInteger>(changes: Bool, _ body: () -> Number) -> Number {
        switch next(changes: changes) {
        case .plain, .half: return body()
        case .error(let number): return -Number(number)
        case .halfThenKill:
            _ = body()
            Strike.killProcess()
        }
    }

    /// Counts a call that writes bytes, and runs `body` with all or some of the bytes unless the call must fail.
    private func put(
        _ bytes: UnsafeRawBufferPointer, at offset: Int64, _ body: (UnsafeRawBufferPointer) -> Int
    ) -> Int {
        let half = UnsafeRawBufferPointer(rebasing: bytes[..<((bytes.count + 1) / 2)])
        switch next(changes: true) {
        case .plain: return body(bytes)
        case .error(let number): return -Int(number)
        case .half: return body(half)
        case .halfThenKill:
            // Linux checks for a fatal signal between two pages, never within a page (generic_perform_write).
            let end = (offset + Int64(half.count)) / 4096 * 4096
            _ = body(end > offset ? UnsafeRawBufferPointer(rebasing: bytes[..<Int(end - offset)]) : bytes)
            Strike.killProcess()
        }
    }

    private func next(changes: Bool) -> Strike.Outcome {
        guard changes || !strike.kind.kills else { return .plain }
        return strike.outcome(of: count.wrappingAdd(1, ordering: .relaxed).oldValue)
    }

    func openat(_ directory: Int32, _ path: String, _ flags: Int32, _ mode: UInt32) -> Int32 {
        run(changes: flags & O_CREAT != 0) { base.openat(directory, path, flags, mode) }
    }
    func openUnnamed(_ directory: Int32, _ mode: UInt32) -> Int32 {
        run(changes: true) { base.openUnnamed(directory, mode) }
    }
    func name(_ descriptor: Int32, _ directory: Int32, _ name: String) -> Int32 {
        run(changes: true) { base.name(descriptor, directory, name) }
    }
    func close(_ descriptor: Int32) -> Int32 { base.close(descriptor) }
    func pwrite(_ descriptor: Int32, _ bytes: UnsafeRawBufferPointer, _ offset: Int64) -> Int {
        put(bytes, at: offset) { base.pwrite(descriptor, $0, offset) }
    }
    func splice(_ descriptor: Int32, _ pipe: Int32, _ count: Int, _ offset: Int64) -> Int {
        spliceCount.add(1, ordering: .relaxed)
        switch next(changes: true) {
        case .plain: return base.splice(descriptor, pipe, count, offset)
        case .error(let number): return -Int(number)
        case .half: return base.splice(descriptor, pipe, (count + 1) / 2, offset)
        case .halfThenKill:
            _ = base.splice(descriptor, pipe, (count + 1) / 2, offset)
            Strike.killProcess()
        }
    }
    func pread(_ descriptor: Int32, _ buffer: UnsafeMutableRawBufferPointer, _ offset: Int64) -> Int {
        switch next(changes: false) {
        case .error(let number): return -Int(number)
        case .half, .halfThenKill:
            let half = UnsafeMutableRawBufferPointer(rebasing: buffer[..<((buffer.count + 1) / 2)])
            return base.pread(descriptor, half, offset)
        case .plain: return base.pread(descriptor, buffer, offset)
        }
    }
    func write(_ descriptor: Int32, _ bytes: UnsafeRawBufferPointer) -> Int {
        put(bytes, at: 0) { base.write(descriptor, $0) }
    }
    func waitUntilWritable(_ descriptor: Int32) -> Int32 { base.waitUntilWritable(descriptor) }
    func fdatasync(_ descriptor: Int32) -> Int32 { run(changes: true) { base.fdatasync(descriptor) } }
    func fsync(_ descriptor: Int32) -> Int32 { run(changes: true) { base.fsync(descriptor) } }
    func syncfs(_ descriptor: Int32) -> Int32 { run(changes: true) { base.syncfs(descriptor) } }
    /// Starts write-back without counting the call: its moment depends only on time, and it does not affect which bytes
    /// a crash can lose.
    func startWriteback(_ descriptor: Int32) -> Int32 { base.startWriteback(descriptor) }
    func waitForWriteback(_ descriptor: Int32) -> Int32 {
        run(changes: false) { base.waitForWriteback(descriptor) }
    }
    func ftruncate(_ descriptor: Int32, _ length: Int64) -> Int32 {
        run(changes: true) { base.ftruncate(descriptor, length) }
    }
    func fallocate(_ descriptor: Int32, _ offset: Int64, _ length: Int64) -> Int32 {
        run(changes: true) { base.fallocate(descriptor, offset, length) }
    }
    func status(_ directory: Int32, _ path: String, _ status: inout FileStatus) -> Int32 {
        run(changes: false) { base.status(directory, path, &status) }
    }
    func space(_ descriptor: Int32, _ space: inout FileSystemSpace) -> Int32 {
        run(changes: false) { base.space(descriptor, &space) }
    }
    func lock(_ descriptor: Int32) -> Int32 { run(changes: false) { base.lock(descriptor) } }
    func rename(_ directory: Int32, _ from: String, _ to: String, keeps: Bool) -> Int32 {
        run(changes: true) { base.rename(directory, from, to, keeps: keeps) }
    }
    func link(_ directory: Int32, _ from: String, _ to: String) -> Int32 {
        run(changes: true) { base.link(directory, from, to) }
    }
    func unlink(_ directory: Int32, _ path: String) -> Int32 {
        run(changes: true) { base.unlink(directory, path) }
    }
    func setAttribute(_ descriptor: Int32, _ name: String, _ value: UnsafeRawBufferPointer) -> Int32 {
        run(changes: true) { base.setAttribute(descriptor, name, value) }
    }
    func getAttribute(_ descriptor: Int32, _ name: String, _ value: UnsafeMutableRawBufferPointer) -> Int {
        run(changes: false) { base.getAttribute(descriptor, name, value) }
    }
    func seek(_ descriptor: Int32, _ offset: Int64, toHole: Bool) -> Int64 {
        run(changes: false) { base.seek(descriptor, offset, toHole: toHole) }
    }
    func setMode(_ descriptor: Int32, _ mode: UInt32) -> Int32 {
        run(changes: true) { base.setMode(descriptor, mode) }
    }
    func setModified(_ descriptor: Int32, _ seconds: Int64) -> Int32 {
        run(changes: true) { base.setModified(descriptor, seconds) }
    }
    func names(_ directory: Int32, _ names: inout [String]) -> Int32 {
        run(changes: false) { base.names(directory, &names) }
    }
}
