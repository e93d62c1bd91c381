import Glibc
import Synchronization

@testable import TowlineDisk

/// Passes calls on, and lets some of them fail according to a plan that is asked before each call.
final class FaultySyscall: Syscall {
    enum Fault: Sendable {
        /// The call does nothing and returns this error.
        case error(Int32)
        /// The call takes or gives only half of the bytes.
        case short
    }

    enum Call: String, Sendable {
        case openat, openUnnamed, name, pwrite, splice, pread, write, fdatasync, fsync, syncfs, startWriteback,
            waitForWriteback, ftruncate,
            fallocate, status
        case space, lock, rename, link, unlink, setAttribute, getAttribute, seek, setModified, setMode, names
        case syncAll
    }

    private struct State {
        var calls: [Call] = []
        var plan: @Sendable (Call, Int) -> Fault?
        var type: Int64?
        var available: Int64?
        var diskSequence: String?
        var changed: Duration?
    }

    private let base: any Syscall
    private let state: Mutex<State>

    /// Creates a relay to `base`. The plan gets the call and the number of calls before it.
    init(_ base: any Syscall = SystemCalls(), plan: @escaping @Sendable (Call, Int) -> Fault? = { _, _ in nil }) {
        self.base = base
        state = Mutex(State(plan: plan))
    }

    /// The calls so far, without `close`.
    var calls: [Call] { state.withLock { $0.calls } }

    func setPlan(_ plan: @escaping @Sendable (Call, Int) -> Fault?) { state.withLock { $0.plan = plan } }

    /// Sets the type number that every file system returns from now on (statfs(2)).
    func setType(_ type: Int64) { state.withLock { $0.type = type } }

    /// Sets the number of free bytes from now on, on a disk that is not small.
    func setAvailable(_ available: Int64) { state.withLock { $0.available = available } }

    /// Sets the change time that every directory returns from now on.
    func setChanged(_ time: Duration) { state.withLock { $0.changed = time } }

    /// Sets the file that contains the disk's sequence number from now on.
    func setDiskSequence(file path: String) { state.withLock { $0.diskSequence = path } }

    private func fault(_ call: Call) -> Fault? {
        let (plan, index) = state.withLock { state in
            state.calls.append(call)
            return (state.plan, state.calls.count - 1)
        }
        return plan(call, index)
    }

    private func run<Number: SignedInteger>(_ call: Call, _ body: () -> Number) -> Number {
        if case .error(let number) = fault(call) { return -Number(number) }
        return body()
    }

    func openat(_ directory: Int32, _ path: String, _ flags: Int32, _ mode: UInt32) -> Int32 {
        let substitute = path.hasSuffix("/diskseq") ? state.withLock { $0.diskSequence } : nil
        return run(.openat) { base.openat(directory, substitute ?? path, flags, mode) }
    }
    func openUnnamed(_ directory: Int32, _ mode: UInt32) -> Int32 {
        run(.openUnnamed) { base.openUnnamed(directory, mode) }
    }
    func name(_ descriptor: Int32, _ directory: Int32, _ name: String) -> Int32 {
        run(.name) { base.name(descriptor, directory, name) }
    }
    func close(_ descriptor: Int32) -> Int32 { base.close(descriptor) }
    func pwrite(_ descriptor: Int32, _ bytes: UnsafeRawBufferPointer, _ offset: Int64) -> Int {
        switch fault(.pwrite) {
        case .error(let number): return -Int(number)
        case .short:
            let half = UnsafeRawBufferPointer(rebasing: bytes[..<((bytes.count + 1) / 2)])
            return base.pwrite(descriptor, half, offset)
        case nil: return base.pwrite(descriptor, bytes, offset)
        }
    }
    func splice(_ descriptor: Int32, _ pipe: Int32, _ count: Int, _ offset: Int64) -> Int {
        switch fault(.splice) {
        case .error(let number): -Int(number)
        case .short: base.splice(descriptor, pipe, (count + 1) / 2, offset)
        case nil: base.splice(descriptor, pipe, count, offset)
        }
    }
    func pread(_ descriptor: Int32, _ buffer: UnsafeMutableRawBufferPointer, _ offset: Int64) -> Int {
        switch fault(.pread) {
        case .error(let number): return -Int(number)
        case .short:
            let half = UnsafeMutableRawBufferPointer(rebasing: buffer[..<((buffer.count + 1) / 2)])
            return base.pread(descriptor, half, offset)
        case nil: return base.pread(descriptor, buffer, offset)
        }
    }
    func write(_ descriptor: Int32, _ bytes: UnsafeRawBufferPointer) -> Int {
        run(.write) { base.write(descriptor, bytes) }
    }
    func waitUntilWritable(_ descriptor: Int32) -> Int32 { base.waitUntilWritable(descriptor) }
    func fdatasync(_ descriptor: Int32) -> Int32 { run(.fdatasync) { base.fdatasync(descriptor) } }
    func fsync(_ descriptor: Int32) -> Int32 { run(.fsync) { base.fsync(descriptor) } }
    func syncfs(_ descriptor: Int32) -> Int32 { run(.syncfs) { base.syncfs(descriptor) } }
    func startWriteback(_ descriptor: Int32) -> Int32 { run(.startWriteback) { base.startWriteback(descriptor) } }
    func waitForWriteback(_ descriptor: Int32) -> Int32 { run(.waitForWriteback) { base.waitForWriteback(descriptor) } }
    func ftruncate(_ descriptor: Int32, _ length: Int64) -> Int32 {
        run(.ftruncate) { base.ftruncate(descriptor, length) }
    }
    func fallocate(_ descriptor: Int32, _ offset: Int64, _ length: Int64) -> Int32 {
        run(.fallocate) { base.fallocate(descriptor, offset, length) }
    }
    func status(_ directory: Int32, _ path: String, _ status: inout FileStatus) -> Int32 {
        let code = run(.status) { base.status(directory, path, &status) }
        if status.kind == .directory, let changed = state.withLock({ $0.changed }) { status.changed = changed }
        return code
    }
    func space(_ descriptor: Int32, _ space: inout FileSystemSpace) -> Int32 {
        let code = run(.space) { base.space(descriptor, &space) }
        if let type = state.withLock({ $0.type }) { space.type = type }
        if let available = state.withLock({ $0.available }) { (space.available, space.total) = (available, .max) }
        return code
    }
    func lock(_ descriptor: Int32) -> Int32 { run(.lock) { base.lock(descriptor) } }
    func rename(_ directory: Int32, _ from: String, _ to: String, keeps: Bool) -> Int32 {
        run(.rename) { base.rename(directory, from, to, keeps: keeps) }
    }
    func link(_ directory: Int32, _ from: String, _ to: String) -> Int32 {
        run(.link) { base.link(directory, from, to) }
    }
    func unlink(_ directory: Int32, _ path: String) -> Int32 { run(.unlink) { base.unlink(directory, path) } }
    func setAttribute(_ descriptor: Int32, _ name: String, _ value: UnsafeRawBufferPointer) -> Int32 {
        run(.setAttribute) { base.setAttribute(descriptor, name, value) }
    }
    func getAttribute(_ descriptor: Int32, _ name: String, _ value: UnsafeMutableRawBufferPointer) -> Int {
        run(.getAttribute) { base.getAttribute(descriptor, name, value) }
    }
    func seek(_ descriptor: Int32, _ offset: Int64, toHole: Bool) -> Int64 {
        run(.seek) { base.seek(descriptor, offset, toHole: toHole) }
    }
    func setMode(_ descriptor: Int32, _ mode: UInt32) -> Int32 {
        run(.setMode) { base.setMode(descriptor, mode) }
    }
    func setModified(_ descriptor: Int32, _ seconds: Int64) -> Int32 {
        run(.setModified) { base.setModified(descriptor, seconds) }
    }
    func names(_ directory: Int32, _ names: inout [String]) -> Int32 { run(.names) { base.names(directory, &names) } }
    func syncAll() { if fault(.syncAll) == nil { base.syncAll() } }
}
