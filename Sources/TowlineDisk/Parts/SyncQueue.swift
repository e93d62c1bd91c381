import Glibc
import Synchronization
internal import TowlineCore
internal import TowlineEngine
internal import TowlineThreads

/// Syncs files to stable storage (fsync(2)) on a thread per device (docs/internals/group-syncs.md): a sync blocks, so
/// neither Swift's cooperative threads nor the threads that receive data may wait for it.
///
/// Requests that arrive during a sync are served together by the next one; eight files or more by a single `syncfs`. A
/// request is always answered: cancelling a task does not withdraw it.
package final class SyncQueue: Sendable {
    /// The part of a file that a sync must make durable.
    enum Extent: Sendable {
        /// The bytes of the file, and the metadata needed to read them (`fdatasync`).
        case data
        /// The file with all its metadata, or the names in a directory (`fsync`).
        case everything
    }

    /// A step that gives a file its name once its bytes are durable, and the directory that is synced after that step.
    struct Naming: Sendable {
        let folder: Descriptor
        /// `true` if the file had no name before. The file is then synced again under its name, because an earlier sync
        /// may have had no effect.
        var isFirst = false
        /// Names the file. Returns `false` if the file was not named; the directory is then unchanged.
        let give: @Sendable () -> Bool
    }

    /// The results of the syncs of a file and of the directory that contains its name: 0, or `-errno`.
    struct Outcome: Sendable {
        var file: Int32
        var folder: Int32 = 0
    }

    /// A request to sync a file, with the step that names the file afterwards and the caller that waits.
    private struct Request: Sendable {
        let file: Descriptor
        let extent: Extent
        let naming: Naming?
        let continuation: CheckedContinuation<Outcome, Never>
    }

    /// The waiting sync requests of one device, and the state of the thread that serves them.
    private struct Lane {
        var waiting: [Request] = []
        /// The files whose bytes the kernel may start to write to the disk before a sync is requested.
        var early: [ObjectIdentifier: Descriptor] = [:]
        /// The event that wakes the device's thread while it waits for requests.
        let wakeup = AutoResetEvent()
        var isParked = false
        /// `true` while the thread delays the waiting sync requests to collect more for the same sync.
        var isHeld = false
        var isServed = false

        var isEmpty: Bool { waiting.isEmpty && early.isEmpty }

        /// Returns how to notify the device's thread of a new request: not at all, by waking it, or by starting it.
        mutating func call() -> Call {
            defer { isServed = true }
            guard isServed else { return .thread }
            guard isParked || isHeld && !mayHold else { return .nobody }
            (isParked, isHeld) = (false, false)
            return .wake(wakeup)
        }

        /// Returns whether the waiting sync requests may be delayed to share a sync with later ones: only small files,
        /// until enough of them have arrived.
        private var mayHold: Bool {
            early.isEmpty && waiting.count < GroupCommit.enough && waiting.allSatisfy { $0.naming?.isFirst == true }
        }

        /// Returns how long the sync thread of this device waits for further requests, so that one sync serves them
        /// all, and the event that wakes it earlier. Returns `nil` if it syncs immediately.
        mutating func hold(_ commit: GroupCommit) -> (wakeup: AutoResetEvent, patience: Duration)? {
            guard !waiting.isEmpty, mayHold,
                let patience = commit.patience(waiting: waiting.count, at: MonotonicClock.now)
            else { return nil }
            isHeld = true
            return (wakeup, patience)
        }

        /// Removes and returns the waiting sync requests and the files for early write-back. Returns `nil` if both are
        /// empty; the thread then counts as parked: it sleeps until the next request.
        mutating func take() -> (batch: [Request], early: [Descriptor])? {
            defer { (waiting, early, isHeld) = ([], [:], false) }
            isParked = isEmpty
            return isParked ? nil : (waiting, Array(early.values))
        }
    }

    /// The way to notify a device's thread of a new request: not at all, by waking it, or by starting it. Performed
    /// after the lock is released, because the woken thread needs the lock.
    private enum Call {
        case nobody
        case wake(AutoResetEvent)
        case thread
    }

    /// The time in milliseconds that a thread without requests waits for the next request before it ends.
    private let patience: Int
    /// The policy, in its initial state, that decides how long each device's thread delays a sync to collect more
    /// files.
    private let commit: GroupCommit

    /// The minimum number of files at which one `syncfs` is cheaper than a sync of each file.
    private static let manyFiles = 8

    private let syscall: any Syscall
    /// Starts a thread that runs the closure. Returns `false` if the system refuses to start a thread.
    private let tryStart: @Sendable (@escaping @Sendable () -> Void) -> Bool
    private let lanes = Mutex<[UInt64: Lane]>([:])

    /// `true` until the first file is published, if callers may block: that file, often the only one, is synced on the
    /// calling thread.
    private let firstIsCallers: Atomic<Bool>

    /// Creates a queue of sync requests without threads; each device gets a thread when it is needed.
    ///
    /// - Parameter callersMayWait: `true` if callers of `publish` may block: the first file, often the only one, then
    ///   needs no thread.
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

    /// Makes all bytes durable that were written to the file before the call, and then returns. Throws if the sync
    /// fails. `device` is the number of the device that holds the file.
    func synchronize(_ file: Descriptor, _ extent: Extent, device: UInt64) async throws(TowlineError) {
        let outcome = await request(file, extent, nil, device)
        guard outcome.file >= 0 else { throw .synchronizing(file.path, -outcome.file) }
    }

    /// Syncs a file, calls `naming.give`, and syncs the directory. Each step runs only if the previous one succeeded.
    /// Returns the results of the syncs.
    ///
    /// For many files that arrive together, the bytes of all files are synced first, then all files are named, then
    /// each directory is synced once.
    ///
    /// - Parameter callerMayWait: `true` to allow the syncs on the calling thread, which then blocks, if no thread
    ///   serves the device.
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

    /// Makes the kernel start to write a file's bytes to the disk (write-back), so that its next sync is short. Returns
    /// immediately.
    ///
    /// If the request queue of the device is full, `sync_file_range` blocks, so it runs on the device's thread: a sync
    /// behind it waits for the same bytes anyway. An error is left to the sync, which gets it again.
    func startWriteback(of file: Descriptor, device: UInt64) {
        let call = lanes.withLock { lanes in
            lanes[device, default: Lane()].early[ObjectIdentifier(file)] = file
            return lanes[device]?.call() ?? .nobody
        }
        perform(call, device)
    }

    /// Returns whether a thread currently serves a device, for tests.
    func isServed(_ device: UInt64) -> Bool { lanes.withLock { $0[device] != nil } }

    /// Returns the number of requests that wait for a device, except those being served, for tests.
    func waiting(_ device: UInt64) -> Int { lanes.withLock { $0[device]?.waiting.count ?? 0 } }

    /// Notifies the thread of a device, or starts it. If that fails, the caller serves the waiting requests, then
    /// continues.
    private func perform(_ call: Call, _ device: UInt64, callerMayWait: Bool = false) {
        switch call {
        case .nobody: break
        case .wake(let wakeup): wakeup.set()
        case .thread where callerMayWait && firstIsCallers.exchange(false, ordering: .relaxed):
            serveOnce(device)
        case .thread: if !tryStart({ self.serve(device, stays: true) }) { serve(device, stays: false) }
        }
    }

    /// Performs the requests for a device until no request has arrived for `patience`; without `stays`, until none
    /// waits.
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

    /// Makes the sync thread of a device wait a moment for more small files, as `commit` decides, so that one sync
    /// serves all of them.
    private func waitForCompany(_ device: UInt64, _ commit: GroupCommit) {
        guard let hold = lanes.withLock({ $0[device]?.hold(commit) }) else { return }
        _ = hold.wakeup.wait(milliseconds: Int(hold.patience / .milliseconds(1)))
    }

    /// Performs the waiting requests for a device on the calling thread, and starts a thread for requests that arrived
    /// meanwhile.
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

    /// Waits up to `patience` for a new request; without `stays`, only checks for one. Returns `false` if none arrived:
    /// the thread must then end.
    private func waitsLonger(for device: UInt64, stays: Bool) -> Bool {
        guard let wakeup = lanes.withLock({ $0[device]?.wakeup }) else { return false }
        if stays, wakeup.wait(milliseconds: patience) { return true }
        return lanes.withLock { lanes in
            // Not parked: the thread was woken just now.
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
            // A system-wide sync does not report which pages failed; the wait for each file does, without writing
            // again.
            let code = sharesOne ? call(entry.file) { syscall.waitForWriteback($0) } : -ENOSYS
            return code.isLacking ? synchronize(entry.file, entry.extent) : code
        }
        for (key, code) in results where code < 0 { files[key]?.file.failedSyncs.add(1, ordering: .releasing) }
        answer(batch) { results[ObjectIdentifier($0)] ?? -EIO }
    }

    /// Names the files that are durable, syncs their directories, and resumes all callers with the results. `result`
    /// returns the outcome of the sync of a file, 0 or `-errno`.
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
        // Each directory is synced even after `syncfs`, which does not report failures in every kernel (fixed in Linux
        // 5.17).
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

    /// The file systems, by magic number (statfs(2)), whose `syncfs` may succeed without syncing: the kernel does not
    /// pass it to a FUSE server (fs/fuse/inode.c, `fuse_sync_fs`), and a remote machine syncs its files independently.
    /// FUSE, 9P, SMB, CIFS, Ceph, NFS.
    static let asksEachFile: Set<Int64> = [
        0x6573_5546, 0x0102_1997, 0xFE53_4D42, 0xFF53_4D42, 0x00C3_6400, 0x6969,
    ]

    /// Syncs the whole file system that contains `file`. Returns `false` if the sync fails or is not reliable on this
    /// file system; the caller then syncs each file.
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
