import Synchronization
internal import TowlineCore

/// Takes the space of a long file while it comes, 64 MiB at a time around each place that is written: a response head
/// alone, which may claim any length, takes no more of the disk than that.
///
/// `@unchecked Sendable`: what changes are atomics.
final class SpaceReservation: @unchecked Sendable {
    /// So many bytes are taken at once.
    static let step: Int64 = 64 << 20

    /// Number of bytes between two checks of the free space, for a file without reserved space.
    private static let interval: Int64 = 8 << 20

    /// The file system that the file is on.
    let device: UInt64
    private let length: Int64
    /// True if the file system can reserve space.
    private let takes: Bool
    private let source: Preallocation
    /// A bit for each step that was taken, or written to.
    private let words: UnsafeMutableBufferPointer<Atomic<UInt64>>
    private let taken: Atomic<Int64>
    /// Bytes that were written; counted where no space is taken ahead.
    private let written = Atomic<Int64>(0)
    private let countsSteps: Bool
    let mayUseFloor: Bool

    /// - Parameter taken: the number of steps, from the first, that are taken already: 0 or 1.
    init(length: Int64, device: UInt64, takes: Bool, taken: Int, from source: Preallocation) {
        self.length = length
        self.device = device
        self.takes = takes
        self.source = source
        countsSteps = true
        mayUseFloor = false
        self.taken = Atomic(min(length, Int64(taken) * Self.step))
        let steps = (length - 1) / Self.step + 1
        words = .allocate(capacity: Int((steps - 1) / 64 + 1))
        for index in words.indices {
            words.initializeElement(at: index, to: Atomic(index == 0 ? UInt64(taken) : 0))
        }
    }

    /// Takes no space, and checks every 8 MiB if enough is left for others: for a file of unknown length, or one that
    /// an earlier run began.
    convenience init(watching source: Preallocation) { self.init(resuming: 0, device: 0, from: source) }

    /// The same, for a download that needs `length` more bytes of the disk.
    ///
    /// - Parameter mayUseFloor: the space that long files leave free is for this file, too.
    init(resuming length: Int64, device: UInt64, from source: Preallocation, mayUseFloor: Bool = false) {
        (takes, countsSteps) = (false, false)
        self.mayUseFloor = mayUseFloor
        self.length = length
        self.device = device
        self.source = source
        taken = Atomic(0)
        words = .allocate(capacity: 0)
    }

    deinit {
        words.deinitialize()
        words.deallocate()
    }

    /// So many bytes are not taken yet; where nothing is taken ahead, they are not written yet.
    var rest: Int64 { max(0, length - (takes ? taken.load(ordering: .relaxed) : written.load(ordering: .relaxed))) }

    /// The file is closed: the rest of the space is available to other downloads.
    func end() {
        taken.store(length, ordering: .relaxed)
        written.store(length, ordering: .relaxed)
    }

    /// Counts the rest as taken, if that much is free.
    func promise(in folder: Folder) throws(TowlineError) { try source.promise(self, in: folder) }

    /// Takes the steps that a write of `count` bytes touches, unless they are taken. A write touches two at most.
    func cover(_ offset: Int64, _ count: Int, of file: Descriptor) throws(TowlineError) {
        guard count > 0 else { return }
        let before = takes ? 0 : written.wrappingAdd(Int64(count), ordering: .relaxed).oldValue
        guard countsSteps else {
            let isDue = before == 0 || before / Self.interval != (before + Int64(count)) / Self.interval
            if isDue, !mayUseFloor { try source.checkFloor(before == 0 ? Int64(count) : Self.interval, file) }
            return
        }
        let (first, last) = (offset / Self.step, (offset + Int64(count) - 1) / Self.step)
        try take(first, of: file)
        if last != first { try take(last, of: file) }
    }

    private func take(_ step: Int64, of file: Descriptor) throws(TowlineError) {
        let (index, bit) = (Int(step / 64), UInt64(1) << UInt64(step % 64))
        guard words.indices.contains(index), words[index].load(ordering: .relaxed) & bit == 0,
            words[index].bitwiseOr(bit, ordering: .relaxed).oldValue & bit == 0
        else { return }
        let start = step * Self.step
        let size = min(Self.step, length - start)
        taken.wrappingAdd(size, ordering: .relaxed)
        do throws(TowlineError) {
            try source.checkFloor(size, file)
            guard takes else { return }
            let syscall = file.syscall
            let code = try file.call { syscall.fallocate($0, start, size) }
            guard code >= 0 else { throw .reserving(file.path, size, -code) }
        } catch {
            // The next write there asks again.
            words[index].bitwiseAnd(~bit, ordering: .relaxed)
            taken.wrappingSubtract(size, ordering: .relaxed)
            throw error
        }
    }
}
