import Glibc
import Synchronization
internal import TowlineCore
internal import TowlineEngine
internal import TowlineThreads

/// Makes files durable, off the cooperative threads and the engine's.
///
/// Each device has one thread while something waits for it and a moment longer: of many small files each would otherwise
/// have two threads made for it. Requests that arrive while a sync runs are served
/// together by the next one; eight files or more by a single `syncfs`. A request that was made is always answered:
/// cancelling a task does not take it back.
package final class SyncQueue: Sendable {
    /// What to make durable.
    enum Extent: Sendable {
        /// The bytes, and what is needed to read them: `fdatasync`.
        case data
        /// Everything of the file, or the names in a directory: `fsync`.
        case everything
    }

    /// A name that a file gets once it is durable, and the directory that has to be durable then.
    struct Naming: Sendable {
        let folder: Descriptor
        /// The file has no name before: what was synced of it may be worth nothing until it is synced with its name.
        var isFirst = false
        /// Gives the name; `false`: it was not given, and the directory is as it was.
        let give: @Sendable () -> Bool
    }

    /// What came of a file, and of the directory it got its name in: 0, or `-errno`.
    struct Outcome: Sendable {
        var file: Int32
        var folder: Int32 = 0
    }

    private struct Request: Sendable {
        let file: Descriptor
        let extent: Extent
        let naming: Naming?
        let continuation: CheckedContinuation<Outcome, Never>
    }

    private struct Lane {
        var waiting: [Request] = []
        /// Files whose bytes may begin to go to the disk.
        var early: [ObjectIdentifier: Descriptor] = [:]
        /// Wakes the thread that waits for more to do.
        let wakeup = AutoResetEvent()
        var isParked = false
        /// The thread waits for company for those that wait.
        var isHeld = false
        var isServed = false

        var isEmpty: Bool { waiting.isEmpty && early.isEmpty }

        /// Who has to hear that there is something to do.
        mutating func call() -> Call {
            defer { isServed = true }
            guard isServed else { return .thread }
            guard isParked || isHeld && !mayHold else { return .nobody }
            (isParked, isHeld) = (false, false)
            return .wake(wakeup)
        }

        /// Whether those that wait may wait for company: small files do, of which enough others come.
        private var mayHold: Bool {
            early.isEmpty && waiting.count < GroupCommit.enough && waiting.allSatisfy { $0.naming?.isFirst == true }
        }

        /// How long the thread waits for company for those that wait, and for what; `nil`: not at all.
        mutating func hold(_ commit: GroupCommit) -> (wakeup: AutoResetEvent, patience: Duration)? {
            guard !waiting.isEmpty, mayHold,
                let patience = commit.patience(waiting: waiting.count, at: MonotonicClock.now)
            else { return nil }
            isHeld = true
            return (wakeup, patience)
        }

        /// What there is to do; nothing: the thread waits for it now.
        mutating func take() -> (batch: [Request], early: [Descriptor])? {
            defer { (waiting, early, isHeld) = ([], [:], false) }
            isParked = isEmpty
            return isParked ? nil : (waiting, Array(early.values))
        }
    }

    /// Who has to hear of a new request, once the lock is free again: whoever is woken wants it at once.
    private enum Call {
        case nobody
        case wake(AutoResetEvent)
        case thread
    }

    /// So many milliseconds a thread waits for more to do.
    private let patience: Int
    /// How each device's thread begins.
    private let commit: GroupCommit

    /// From how many files on one `syncfs` is cheaper than a sync of each.
    private static let manyFiles = 8

    private let syscall: any Syscall
    /// Starts a thread, if one can be had.
    private let tryStart: @Sendable (@escaping @Sendable () -> Void) -> Bool
    private let lanes = Mutex<[UInt64: Lane]>([:])

    /// Whether the next file to be published is made durable by who brings it.
    private let firstIsCallers: Atomic<Bool>

    /// Makes a queue.
    ///
    /// - Parameter callersMayWait: who publishes may wait for a disk: the first file, often the only one, needs no thread.
    package convenience init(syscall: any Syscall, callersMayWait: Bool = false) {
        self.init(syscall: syscall, patience: 200, callersMayWait: callersMayWait)
    }

    init(
        syscall: any Syscall, patience: Int, commit: GroupCommit = GroupCommit(), callersMayWait: Bool = false,
        tryStart: @escaping @Sendable (@escaping @Sendable () -> Void) -> Bool = { WorkThread.tryStart($0) }
    ) {
        self.syscall = syscall
        self.patience = patience
        self.commit = commit
        self.tryStart = tryStart
        firstIsCallers = Atomic(callersMayWait)
    }

    /// Returns when what was written to the file before the call is durable.
    func synchronize(_ file: Descriptor, _ extent: Extent, device: UInt64) async throws(TowlineError) {
        let outcome = await request(file, extent, nil, device)
        guard outcome.file >= 0 else { throw .synchronizing(file.path, -outcome.file) }
    }

    /// Makes a file durable, has it named, and makes the name durable; each only if what comes before it went well.
    ///
    /// Of many files that come together the bytes are synced first, then all get their names, then each directory is
    /// synced once.
    ///
    /// - Parameter callerMayWait: where nothing else serves the device, this may be done on the calling thread.
    func publish(
        _ file: Descriptor, _ naming: Naming, device: UInt64, callerMayWait: Bool = false
    ) async -> Outcome {
        await request(file, .everything, naming, device, callerMayWait: callerMayWait)
    }

    private func request(
        _ file: Descriptor, _ extent: Extent, _ naming: Naming?, _ device: UInt64, callerMayWait: Bool = false
    ) async -> Outcome {
        await withCheckedContinuation { continuation in
            let request = Request(file: file, extent: extent, naming: naming, continuation: continuation)
            let call = lanes.withLock { lanes in
                lanes[device, default: Lane()].waiting.append(request)
                return lanes[device]?.call() ?? .nobody
            }
            perform(call, device, callerMayWait: callerMayWait)
        }
    }

    /// Lets the bytes of a file begin to go to the disk, so that its next sync is short; returns at once.
    ///
    /// A full queue of the device blocks `sync_file_range`, which therefore has the device's thread to itself: a sync
    /// behind it waits for the same bytes anyway. An error is left to the sync, which is told of it again.
    func startWriteback(of file: Descriptor, device: UInt64) {
        let call = lanes.withLock { lanes in
            lanes[device, default: Lane()].early[ObjectIdentifier(file)] = file
            return lanes[device]?.call() ?? .nobody
        }
        perform(call, device)
    }

    /// Whether a device has a thread.
    func isServed(_ device: UInt64) -> Bool { lanes.withLock { $0[device] != nil } }

    /// How many requests wait for a device, the ones being served not counted.
    func waiting(_ device: UInt64) -> Int { lanes.withLock { $0[device]?.waiting.count ?? 0 } }

    /// Without a thread the caller serves what waits, and goes its way: it has other things to do.
    private func perform(_ call: Call, _ device: UInt64, callerMayWait: Bool = false) {
        switch call {
        case .nobody: break
        case .wake(let wakeup): wakeup.set()
        case .thread where callerMayWait && firstIsCallers.exchange(false, ordering: .relaxed):
            serveOnce(device)
        case .thread: if !tryStart({ self.serve(device, stays: true) }) { serve(device, stays: false) }
        }
    }

    /// Serves a device until nothing waits for it, or has waited for a moment.
    private func serve(_ device: UInt64, stays: Bool) {
        var commit = commit
        while true {
            if stays { waitForCompany(device, commit) }
            if let (batch, early) = lanes.withLock({ $0[device]?.take() }) {
                let began = MonotonicClock.now
                if !batch.isEmpty { serve(batch) }
                commit.served(batch.count, from: began, to: MonotonicClock.now)
                for file in early { _ = call(file) { syscall.startWriteback($0) } }
            } else if !waitsLonger(for: device, stays: stays) {
                return
            }
        }
    }

    /// Of many small files those that come in the next moment are served by the same sync.
    private func waitForCompany(_ device: UInt64, _ commit: GroupCommit) {
        guard let hold = lanes.withLock({ $0[device]?.hold(commit) }) else { return }
        _ = hold.wakeup.wait(milliseconds: Int(hold.patience / .milliseconds(1)))
    }

    /// Serves what waits by now, and leaves what came meanwhile to a thread.
    private func serveOnce(_ device: UInt64) {
        guard let (batch, early) = lanes.withLock({ $0[device]?.take() }) else { return }
        serve(batch)
        for file in early { _ = call(file) { syscall.startWriteback($0) } }
        let isOver = lanes.withLock { lanes in
            guard lanes[device]?.isEmpty ?? true else { return false }
            lanes[device] = nil
            return true
        }
        if !isOver, !tryStart({ self.serve(device, stays: true) }) { serve(device, stays: false) }
    }

    /// Waits to be woken; `false` if nobody did, and there is nothing to do either: the thread ends.
    private func waitsLonger(for device: UInt64, stays: Bool) -> Bool {
        guard let wakeup = lanes.withLock({ $0[device]?.wakeup }) else { return false }
        if stays, wakeup.wait(milliseconds: patience) { return true }
        return lanes.withLock { lanes in
            // Not parked: it was woken just now.
            guard lanes[device]?.isParked == true else { return true }
            lanes[device] = nil
            return false
        }
    }

    private func serve(_ batch: [Request]) {
        var files: [ObjectIdentifier: (file: Descriptor, extent: Extent)] = [:]
        for request in batch {
            let key = ObjectIdentifier(request.file)
            let extent = files[key]?.extent == .everything ? .everything : request.extent
            files[key] = (request.file, extent)
        }
        let sharesOne = files.count >= SyncQueue.manyFiles && synchronizeFileSystem(of: batch[0].file)
        let results = files.mapValues { entry in
            // A system-wide sync does not tell whose pages failed, each file's own wait does, without writing again.
            let code = sharesOne ? call(entry.file) { syscall.waitForWriteback($0) } : -ENOSYS
            return code.isLacking ? synchronize(entry.file, entry.extent) : code
        }
        for (key, code) in results where code < 0 { files[key]?.file.failedSyncs.add(1, ordering: .releasing) }
        answer(batch) { results[ObjectIdentifier($0)] ?? -EIO }
    }

    /// Has those named whose file is durable, syncs their directories, and tells everybody what came of it.
    private func answer(_ batch: [Request], _ result: (Descriptor) -> Int32) {
        var outcomes = batch.map { Outcome(file: result($0.file)) }
        var named: [Int: Descriptor] = [:]
        for (index, request) in batch.enumerated() {
            guard let naming = request.naming, outcomes[index].file >= 0, naming.give() else { continue }
            named[index] = naming.folder
        }
        let first = named.keys.filter { batch[$0].naming?.isFirst == true }
        if !(first.count >= SyncQueue.manyFiles && synchronizeFileSystem(of: batch[first[0]].file)) {
            for index in first { outcomes[index].folder = synchronize(batch[index].file, .everything) }
        }
        // Each directory itself, whatever `syncfs` said: not every kernel's tells of what failed (fixed in Linux 5.17).
        var folders: [ObjectIdentifier: Int32] = [:]
        for (index, folder) in named {
            let known = folders[ObjectIdentifier(folder)]
            let code = known ?? synchronize(folder, .everything)
            folders[ObjectIdentifier(folder)] = code
            outcomes[index].folder = min(outcomes[index].folder, code)
        }
        LocalRunQueue.together {
            for (index, request) in batch.enumerated() { request.continuation.resume(returning: outcomes[index]) }
        }
    }

    /// File systems whose `syncfs` may be a success that nobody was asked for: the kernel hands it to no FUSE server
    /// (fs/fuse/inode.c, `fuse_sync_fs`), and what is on another machine is its own affair. By their numbers of
    /// statfs(2): FUSE, 9P, SMB, CIFS, Ceph, NFS.
    private static let asksEachFile: Set<Int64> = [
        0x6573_5546, 0x0102_1997, 0xFE53_4D42, 0xFF53_4D42, 0x00C3_6400, 0x6969,
    ]

    /// Whether all of the file system is durable now. If not, each file is asked for itself.
    private func synchronizeFileSystem(of file: Descriptor) -> Bool {
        var space = FileSystemSpace()
        guard call(file, { syscall.space($0, &space) }) >= 0 else { return false }
        guard !Self.asksEachFile.contains(space.type & 0xFFFF_FFFF) else { return false }
        return call(file) { syscall.syncfs($0) } >= 0
    }

    private func synchronize(_ file: Descriptor, _ extent: Extent) -> Int32 {
        do { return try file.synchronize(extent) } catch { return -EBADF }
    }

    private func call(_ file: Descriptor, _ body: (Int32) -> Int32) -> Int32 {
        do { return try file.call(body) } catch { return -EBADF }
    }
}
