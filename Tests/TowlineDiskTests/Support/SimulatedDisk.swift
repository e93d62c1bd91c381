import Glibc
import Synchronization

@testable import TowlineDisk

/// The contents and attributes of one file, without its names.
struct SimulatedInode: Sendable {
    var bytes: [UInt8] = []
    var birth: Int64 = 0
    var owner = geteuid()
    var modified: Int64 = 0
    var attributes: [String: [UInt8]] = [:]
    /// The blocks of 4096 bytes that were written to; the rest are holes.
    var blocks: Set<Int> = []

    mutating func write(_ data: UnsafeRawBufferPointer, at offset: Int) {
        guard !data.isEmpty else { return }
        resize(to: max(bytes.count, offset + data.count))
        bytes.withUnsafeMutableBytes {
            UnsafeMutableRawBufferPointer(rebasing: $0[offset..<(offset + data.count)]).copyMemory(from: data)
        }
        for block in (offset / 4096)...((offset + data.count - 1) / 4096) { blocks.insert(block) }
    }

    mutating func resize(to length: Int) {
        if length > bytes.count { bytes += [UInt8](repeating: 0, count: length - bytes.count) }
        if length < bytes.count { bytes.removeLast(bytes.count - length) }
    }
}

/// The contents of a disk with one directory.
struct DiskImage: Sendable {
    var inodes: [Int: SimulatedInode] = [:]
    var names: [String: Int] = [:]
    var lastInode = 0
    /// `false` to simulate a file system that does not store birth times.
    var keepsBirthTimes = true

    subscript(name: String) -> [UInt8]? { names[name].flatMap { inodes[$0]?.bytes } }

    mutating func add(_ name: String, _ bytes: [UInt8]) {
        lastInode += 1
        var inode = SimulatedInode(birth: Int64(lastInode))
        bytes.withUnsafeBytes { inode.write($0, at: 0) }
        inodes[lastInode] = inode
        names[name] = lastInode
    }
}

/// One entry of the log: a change sent to the device, or a sync that makes changes durable.
enum DiskEvent: Sendable {
    case write(inode: Int, offset: Int, bytes: [UInt8])
    case resize(inode: Int, length: Int)
    case attribute(inode: Int, name: String, value: [UInt8])
    case modified(inode: Int, seconds: Int64)
    case enter(name: String, inode: Int)
    /// The inode counts its name again after a time without any. If this event is lost, so are the file's names: a
    /// check of ext4 without a journal takes the file for a deleted one.
    case counted(inode: Int)
    case rename(from: String, to: String, inode: Int)
    case remove(name: String)
    case syncFile(inode: Int, everything: Bool)
    case syncDirectory
    case note(ScriptNote)
}

/// A disk in memory with one directory, "/disk", that logs all operations. Syncs of a kind in `ignored` succeed without
/// effect, as in a mutation of the code under test.
final class SimulatedDisk: Syscall {
    static let directory = "/disk"

    enum SyncKind: String, CaseIterable, Sendable {
        case partAtCheckpoint
        case partAtPublish
        case directoryAfterPublish
        case directoryBeforeDurableMarks
        case retiredJournal
        case partWithItsName

        /// The syncs of a download with a journal.
        static let journaled: [SyncKind] = [
            .partAtCheckpoint, .partAtPublish, .directoryAfterPublish, .directoryBeforeDurableMarks, .retiredJournal,
        ]
        /// The syncs of a small file.
        static let small: [SyncKind] = [.partAtPublish, .partWithItsName, .directoryAfterPublish]
    }

    private struct State {
        var image: DiskImage
        var log: [DiskEvent] = []
        /// The inode of each open descriptor; 0 stands for the directory. Descriptors are never reused.
        var open: [Int32: Int] = [:]
        var lastDescriptor: Int32 = 2
        var locks: [Int: Int32] = [:]
    }

    private let state: Mutex<State>
    private let ignored: SyncKind?
    /// The file system's number (statfs(2)).
    let type: Int64
    let base: DiskImage

    /// - Parameters:
    /// - log: The operations that led from `base` to `image`, perhaps in another process.
    init(
        _ image: DiskImage = DiskImage(), ignored: SyncKind? = nil, type: Int64 = 0, log: [DiskEvent] = [],
        base: DiskImage? = nil
    ) {
        self.base = base ?? image
        self.type = type
        self.ignored = ignored
        state = Mutex(State(image: image, log: log))
    }

    var image: DiskImage { state.withLock { $0.image } }
    var log: [DiskEvent] { state.withLock { $0.log } }

    func note(_ note: ScriptNote) { state.withLock { $0.log.append(.note(note)) } }

    /// Simulates SIGKILL: descriptors and locks are released, the page cache stays.
    func killProcess() {
        state.withLock {
            $0.open = [:]
            $0.locks = [:]
        }
    }

    private func on<Number: SignedInteger & Sendable>(
        _ descriptor: Int32, _ body: (inout State, Int) -> Number
    ) -> Number {
        state.withLock { state in
            guard let inode = state.open[descriptor] else { return -Number(EBADF) }
            return body(&state, inode)
        }
    }

    func openat(_ directory: Int32, _ path: String, _ flags: Int32, _ mode: UInt32) -> Int32 {
        state.withLock { state in
            var inode = 0
            if directory == AT_FDCWD {
                guard path == SimulatedDisk.directory else { return -ENOENT }
            } else if let present = state.image.names[path] {
                if flags & O_EXCL != 0 { return -EEXIST }
                inode = present
            } else {
                guard flags & O_CREAT != 0 else { return -ENOENT }
                state.image.add(path, [])
                inode = state.image.lastInode
                state.log.append(.enter(name: path, inode: inode))
            }
            state.lastDescriptor += 1
            state.open[state.lastDescriptor] = inode
            return state.lastDescriptor
        }
    }

    func openUnnamed(_ directory: Int32, _ mode: UInt32) -> Int32 {
        state.withLock { state in
            state.image.lastInode += 1
            let inode = state.image.lastInode
            state.image.inodes[inode] = SimulatedInode(birth: Int64(inode))
            state.lastDescriptor += 1
            state.open[state.lastDescriptor] = inode
            return state.lastDescriptor
        }
    }

    func name(_ descriptor: Int32, _ directory: Int32, _ name: String) -> Int32 {
        on(descriptor) { state, inode in
            guard state.image.names[name] == nil else { return -EEXIST }
            state.image.names[name] = inode
            state.log.append(.enter(name: name, inode: inode))
            state.log.append(.counted(inode: inode))
            return 0
        }
    }

    func close(_ descriptor: Int32) -> Int32 {
        on(descriptor) { state, inode in
            if state.locks[inode] == descriptor { state.locks[inode] = nil }
            state.open[descriptor] = nil
            return 0
        }
    }

    func pwrite(_ descriptor: Int32, _ bytes: UnsafeRawBufferPointer, _ offset: Int64) -> Int {
        on(descriptor) { state, inode in
            state.image.inodes[inode]?.write(bytes, at: Int(offset))
            state.log.append(.write(inode: inode, offset: Int(offset), bytes: Array(bytes)))
            return bytes.count
        }
    }

    func splice(_ descriptor: Int32, _ pipe: Int32, _ count: Int, _ offset: Int64) -> Int {
        var bytes = [UInt8](repeating: 0, count: count)
        let got = Glibc.read(pipe, &bytes, count)
        return got < 0 ? -Int(errno) : bytes.withUnsafeBytes { pwrite(descriptor, .init(rebasing: $0[..<got]), offset) }
    }

    func pread(_ descriptor: Int32, _ buffer: UnsafeMutableRawBufferPointer, _ offset: Int64) -> Int {
        on(descriptor) { state, inode in
            guard let bytes = state.image.inodes[inode]?.bytes, offset < bytes.count else { return 0 }
            let count = min(buffer.count, bytes.count - Int(offset))
            bytes.withUnsafeBytes {
                buffer.copyMemory(from: UnsafeRawBufferPointer(rebasing: $0[Int(offset)..<(Int(offset) + count)]))
            }
            return count
        }
    }

    func write(_ descriptor: Int32, _ bytes: UnsafeRawBufferPointer) -> Int { -Int(EBADF) }
    func waitUntilWritable(_ descriptor: Int32) -> Int32 { 0 }

    func fdatasync(_ descriptor: Int32) -> Int32 { synchronize(descriptor, everything: false) }
    func fsync(_ descriptor: Int32) -> Int32 { synchronize(descriptor, everything: true) }

    private func synchronize(_ descriptor: Int32, everything: Bool) -> Int32 {
        on(descriptor) { state, inode in
            if kind(of: inode, everything, state) == ignored, ignored != nil { return 0 }
            state.log.append(inode == 0 ? .syncDirectory : .syncFile(inode: inode, everything: everything))
            return 0
        }
    }

    private func kind(of inode: Int, _ everything: Bool, _ state: State) -> SyncKind? {
        if inode == 0 {
            for event in state.log.reversed() {
                if case .rename(_, let name, _) = event {
                    return name == Script.name ? .directoryAfterPublish : .directoryBeforeDurableMarks
                }
                if case .note(.publishing) = event { return .directoryAfterPublish }
            }
            return .directoryBeforeDurableMarks
        }
        if !state.image.names.values.contains(inode) { return .partAtPublish }
        if state.image.names[Script.name] == inode { return .partWithItsName }
        if state.image.names[Script.name + ".tow"] == inode { return everything ? .partAtPublish : .partAtCheckpoint }
        for event in state.log.reversed() {
            if case .write(inode, let offset, let bytes) = event {
                return offset == 0 && bytes.count == JournalHeader.sectorSize ? .retiredJournal : nil
            }
        }
        return nil
    }

    func syncfs(_ descriptor: Int32) -> Int32 { -ENOSYS }
    func startWriteback(_ descriptor: Int32) -> Int32 { 0 }
    func waitForWriteback(_ descriptor: Int32) -> Int32 { -ENOSYS }

    func ftruncate(_ descriptor: Int32, _ length: Int64) -> Int32 {
        on(descriptor) { state, inode in
            state.image.inodes[inode]?.resize(to: Int(length))
            state.log.append(.resize(inode: inode, length: Int(length)))
            return 0
        }
    }

    func fallocate(_ descriptor: Int32, _ offset: Int64, _ length: Int64) -> Int32 { -EOPNOTSUPP }

    func status(_ directory: Int32, _ path: String, _ status: inout FileStatus) -> Int32 {
        on(directory) { state, directory in
            guard let number = path.isEmpty ? directory : state.image.names[path] else { return -ENOENT }
            status.identity.device = 1
            status.identity.inode = UInt64(number)
            if number == 0 {
                status.kind = .directory
                status.owner = geteuid()
                status.changed = .seconds(state.log.count(where: PowerLoss.isNameEvent)) + .nanoseconds(1)
                return 0
            }
            guard let inode = state.image.inodes[number] else { return -ENOENT }
            status.kind = .regular
            status.identity.birthSeconds = state.image.keepsBirthTimes ? inode.birth : 0
            status.size = Int64(inode.bytes.count)
            status.owner = inode.owner
            status.modifiedSeconds = inode.modified
            status.links = UInt32(state.image.names.values.count { $0 == number })
            return 0
        }
    }

    func space(_ descriptor: Int32, _ space: inout FileSystemSpace) -> Int32 {
        space.type = type
        return 0
    }

    func lock(_ descriptor: Int32) -> Int32 {
        on(descriptor) { state, inode in
            if let holder = state.locks[inode], holder != descriptor { return -EWOULDBLOCK }
            state.locks[inode] = descriptor
            return 0
        }
    }

    func rename(_ directory: Int32, _ from: String, _ to: String, keeps: Bool) -> Int32 {
        on(directory) { state, _ in
            guard let inode = state.image.names[from] else { return -ENOENT }
            if keeps, state.image.names[to] != nil { return -EEXIST }
            state.image.names[from] = nil
            state.image.names[to] = inode
            state.log.append(.rename(from: from, to: to, inode: inode))
            return 0
        }
    }

    func link(_ directory: Int32, _ from: String, _ to: String) -> Int32 { -EPERM }

    func unlink(_ directory: Int32, _ path: String) -> Int32 {
        on(directory) { state, _ in
            guard state.image.names.removeValue(forKey: path) != nil else { return -ENOENT }
            state.log.append(.remove(name: path))
            return 0
        }
    }

    func setAttribute(_ descriptor: Int32, _ name: String, _ value: UnsafeRawBufferPointer) -> Int32 {
        on(descriptor) { state, inode in
            state.image.inodes[inode]?.attributes[name] = Array(value)
            state.log.append(.attribute(inode: inode, name: name, value: Array(value)))
            return 0
        }
    }

    func getAttribute(_ descriptor: Int32, _ name: String, _ value: UnsafeMutableRawBufferPointer) -> Int {
        on(descriptor) { state, inode in
            guard let bytes = state.image.inodes[inode]?.attributes[name] else { return -Int(ENODATA) }
            guard bytes.count <= value.count else { return -Int(ERANGE) }
            value.copyBytes(from: bytes)
            return bytes.count
        }
    }

    func seek(_ descriptor: Int32, _ offset: Int64, toHole: Bool) -> Int64 {
        on(descriptor) { state, number in
            guard let inode = state.image.inodes[number], offset < inode.bytes.count else { return -Int64(ENXIO) }
            var position = Int(offset)
            while position < inode.bytes.count {
                if inode.blocks.contains(position / 4096) != toHole { return Int64(position) }
                position = (position / 4096 + 1) * 4096
            }
            return toHole ? Int64(inode.bytes.count) : -Int64(ENXIO)
        }
    }

    func setModified(_ descriptor: Int32, _ seconds: Int64) -> Int32 {
        on(descriptor) { state, inode in
            state.image.inodes[inode]?.modified = seconds
            state.log.append(.modified(inode: inode, seconds: seconds))
            return 0
        }
    }

    func setMode(_ descriptor: Int32, _ mode: UInt32) -> Int32 { on(descriptor) { _, _ in 0 } }

    func names(_ directory: Int32, _ names: inout [String]) -> Int32 {
        names = state.withLock { Array($0.image.names.keys) }
        return 0
    }
}
