import Synchronization
internal import TowlineCore

/// Reserves the space of a long file while it is downloaded, 64 MiB at a time around each position that is written: a
/// server that states a very large length reserves no more space by that alone.
///
/// `@unchecked Sendable`: all mutable state is atomic.
final class SpaceReservation: @unchecked Sendable {
    /// The number of bytes that one call reserves: the file is divided into steps of this length.
    static let step: Int64 = 64 << 20

    /// The number of bytes between two checks of the free space, for a file whose space is not reserved ahead.
    private static let interval: Int64 = 8 << 20

    /// The number of the device that the file is on, because each device has its own free space.
    let device: UInt64
    private let length: Int64
    /// `true` if the file system can reserve space (fallocate(2)); otherwise the needed space is only counted.
    private let takes: Bool
    private let source: Preallocation
    /// A bit for each step of 64 MiB, set if its space was reserved or its free space was checked.
    private let words: UnsafeMutableBufferPointer<Atomic<UInt64>>
    private let taken: Atomic<Int64>
    /// The number of bytes of the file written so far. Counted only if no space is reserved ahead, to compute `rest`.
    private let written = Atomic<Int64>(0)
    private let countsSteps: Bool
    /// `true` if the file may use the space that larger files must leave free (`Preallocation.keptFree`).
    let mayUseFloor: Bool

    /// Creates a reservation for a new file of `length` bytes. `takes` is `true` if the file system can reserve space.
    ///
    /// - Parameter taken: the number of steps, from the first, that are already reserved: 0 or 1.
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

    /// Creates a reservation that reserves no space, and checks every 8 MiB whether enough space stays free: for a file
    /// of unknown length, or one that an earlier run started.
    convenience init(watching source: Preallocation) { self.init(resuming: 0, device: 0, from: source) }

    /// Creates a reservation that only counts space, for a download that needs `length` more bytes of the disk.
    ///
    /// - Parameter mayUseFloor: `true` if the file may use the space that larger files must leave free.
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

    /// The number of bytes that are not reserved yet or, if no space is reserved ahead, not written yet. Checks of the
    /// free space for other downloads subtract this number.
    var rest: Int64 { max(0, length - (takes ? taken.load(ordering: .relaxed) : written.load(ordering: .relaxed))) }

    /// Ends the reservation: `rest` becomes 0, so that other downloads can use the space. Called when the file is
    /// closed.
    func end() {
        taken.store(length, ordering: .relaxed)
        written.store(length, ordering: .relaxed)
    }

    /// Counts `rest` as needed, so that later downloads do not use this space. Throws `diskFull` if too little is free.
    func promise(in folder: Folder) throws(TowlineError) { try source.promise(self, in: folder) }

    /// Reserves the steps of 64 MiB that a write of `count` bytes at `offset` touches, two at most, unless they are
    /// reserved already. Without reserved space, only checks the free space from time to time. Called before the write;
    /// throws `diskFull` if too little is free.
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
            // The next write to this step tries again.
            words[index].bitwiseAnd(~bit, ordering: .relaxed)
            taken.wrappingSubtract(size, ordering: .relaxed)
            throw error
        }
    }
}
