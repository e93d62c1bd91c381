import Glibc
import Synchronization
package import TowlineCore
package import TowlineEngine

/// The journal file of an unfinished download, which records the bytes of the part file that are written or durable.
/// Implements the `Journal` protocol in the format of `docs/on-disk-format.md`.
///
/// The journal's own lock protects data that rarely changes: metadata, the list of slots (each records one run of
/// bytes), and leases (the right to extend a slot's run). Recording written bytes takes only the lock of the slot. Lock
/// order: journal, then slot.
package final class JournalFile: Journal {
    /// The knowledge about whether the directory entries of the part file and the journal are durable: no sync of the
    /// directory has ended yet, the sync succeeded, or it failed.
    private enum DirectoryState {
        case unknown
        case durable
        case failed(TowlineError)
    }

    /// The contents of the journal file, kept in memory, and the sequence number of its newest durable metadata.
    private struct Records {
        var header: JournalHeader
        var metadata: MetadataBlock
        /// The index (0 or 1) of the block in the file that holds `metadata` now. The next change is written to the
        /// second of the two blocks, so that this one stays intact.
        var block: Int
        /// The sequence number of the newest metadata (URL, length, validators) that a sync has made durable.
        var durableSequence: UInt64
        var directory = DirectoryState.unknown
        var slots: [MarkSlot]
        var lastLease: UInt64 = 0
        /// A counter that increases when a sync fails: older snapshots of the written bytes are then invalid.
        var epoch: UInt64 = 0
    }

    let file: Descriptor
    let folder: Folder
    let name: String
    private let queue: SyncQueue
    private let marks: MarksSection
    private let metadataOffset: Int64
    private let state: Mutex<Records>

    /// The parsed contents of a new or opened journal file, which the initializer takes.
    struct Contents {
        var header: JournalHeader
        var metadata: MetadataBlock
        var block: Int
        var marks: MarksSection
        var metadataOffset: Int64
        var runs: [MarkSlot.Run]
        var damagedMarks: Int
        /// The sequence number of the newest metadata (URL, length, validators) that is durable; 0 if none is known to
        /// be.
        var durableSequence: UInt64
    }

    init(_ contents: Contents, file: Descriptor, folder: Folder, name: String, queue: SyncQueue) {
        self.file = file
        self.folder = folder
        self.name = name
        self.queue = queue
        marks = contents.marks
        metadataOffset = contents.metadataOffset
        let slots = contents.runs.enumerated().map {
            MarkSlot(index: $0.offset, marks: contents.marks, run: $0.element)
        }
        state = Mutex(
            Records(
                header: contents.header, metadata: contents.metadata, block: contents.block,
                durableSequence: contents.durableSequence, slots: slots))
    }

    package var record: DownloadRecord { state.withLock { $0.metadata.record } }

    /// The identity of this journal, which no other journal has.
    var id: UInt64 { state.withLock { $0.header.id } }

    /// The identity of the part file whose bytes the journal records.
    var part: FileIdentity { state.withLock { $0.metadata.part } }

    /// Stores changed metadata of the download. The number of the part file (generation) stays as it is stored. Throws
    /// if the journal cannot be written.
    package func update(_ record: DownloadRecord) throws(TowlineError) {
        try change { metadata in
            let generation = metadata.record.generation
            metadata.record = record
            metadata.record.generation = generation
        }
    }

    /// Stores the identity of the present part file, which is a copy of the part file that the journal was created
    /// with, or the same file with another inode number.
    func adopt(_ part: FileIdentity) throws(TowlineError) {
        try change { $0.part = part }
    }

    package func adoptPart(_ sink: any Sink) throws(TowlineError) {
        guard let part = sink as? PartFile, part.journal === self else { return }
        try adopt(part.file.identity())
        PartMark.add(to: part.file, journal: id)
    }

    private func change(_ body: (inout MetadataBlock) -> Void) throws(TowlineError) {
        try state.withLock { (state) throws(TowlineError) in
            var metadata = state.metadata
            body(&metadata)
            if metadata.record == state.metadata.record, metadata.part == state.metadata.part { return }
            metadata.sequence += 1
            let bytes = try metadata.encoded(journal: state.header.id)
            if state.durableSequence < state.metadata.sequence {
                // The other block may be the only durable one, so it must not be overwritten before this block is
                // durable.
                try file.synchronizeData()
                state.durableSequence = state.metadata.sequence
            }
            let block = 1 - state.block
            try file.write(bytes, at: metadataOffset + Int64(block * MetadataBlock.byteCount))
            state.metadata = metadata
            state.block = block
        }
    }

    // MARK: Slots

    package func claimSlot(at offset: Int64) throws(TowlineError) -> (any JournalSlot)? {
        try state.withLock { (state) throws(TowlineError) in
            state.lastLease += 1
            if let lease = JournalFile.lease(in: &state, at: offset) { return lease }
            if state.slots.count < marks.slotCount {
                state.slots.append(MarkSlot(index: state.slots.count, marks: marks))
            } else {
                try mergeRuns(&state)
            }
            return JournalFile.lease(in: &state, at: offset)
        }
    }

    private static func lease(in state: inout Records, at offset: Int64) -> SlotLease? {
        let number = state.lastLease
        // A run that ends at this offset is continued in preference to an empty slot.
        let continued = state.slots.first { slot in
            let run = slot.current
            return !run.isEmpty && run.end == offset && slot.lease(number, at: offset)
        }
        let slot = continued ?? state.slots.first { $0.current.isEmpty && $0.lease(number, at: offset) }
        return slot.map { SlotLease(slot: $0, number: number) }
    }

    package func release(_ slot: any JournalSlot) {
        guard let lease = slot as? SlotLease else { return }
        lease.slot.release(lease.number)
    }

    /// Merges adjacent runs of bytes to free their slots. The merged runs are made durable before the runs that they
    /// replace are cleared: until then the journal records these bytes twice, so a crash loses no record.
    private func mergeRuns(_ state: inout Records) throws(TowlineError) {
        let slots = state.slots.filter { !$0.current.isEmpty && $0.current.lease == 0 }
            .sorted { $0.current.start < $1.current.start }
        var emptied: [MarkSlot] = []
        var last: MarkSlot?
        for slot in slots {
            let run = slot.current
            guard let target = last, case let left = target.current, left.end >= run.start,
                left.durableEnd == left.end
            else {
                last = slot
                continue
            }
            try target.replace(
                start: left.start, end: max(left.end, run.end), durableEnd: max(left.durableEnd, run.durableEnd))
            emptied.append(slot)
        }
        guard !emptied.isEmpty else { return }
        try file.synchronizeData()
        for slot in emptied { try slot.replace(start: 0, end: 0, durableEnd: 0) }
    }

    // MARK: Claims

    package var durable: ByteRangeSet {
        state.withLock { state in ByteRangeSet(state.slots.map(\.current.durable)) }
    }

    package var written: ByteRangeSet {
        state.withLock { state in ByteRangeSet(state.slots.map(\.current.written)) }
    }

    package func checkpoint(_ sink: any Sink) async throws(TowlineError) {
        let (snapshots, epoch, sequence, directory) = state.withLock { state in
            let seen = state.slots.compactMap { slot in slot.snapshot.map { (slot, $0) } }
            return (seen, state.epoch, state.metadata.sequence, state.directory)
        }
        if case .failed(let error) = directory { throw error }
        if snapshots.isEmpty {
            guard state.withLock({ $0.durableSequence < sequence }) else { return }
        } else {
            do {
                try await sink.synchronize()
            } catch {
                forgetWhatIsNotDurable()
                throw error
            }
        }
        // Durable marks count only once no power loss can restore an older part file or journal under these names.
        if case .unknown = directory { try await makeDirectoryDurable() }
        try state.withLock { (state) throws(TowlineError) in
            guard state.epoch == epoch else {
                throw TowlineError(
                    .diskFailure,
                    "some downloaded bytes could not be saved to the disk, so the journal file \(file.path) does not "
                        + "list them. Check the disk if this occurs again")
            }
            for (slot, snapshot) in snapshots { try slot.recordDurable(snapshot) }
        }
        try await synchronizeFile()
        state.withLock { $0.durableSequence = max($0.durableSequence, sequence) }
    }

    private func makeDirectoryDurable() async throws(TowlineError) {
        do {
            try await queue.synchronize(folder.descriptor, .everything, device: folder.identity.device)
            state.withLock { $0.directory = .durable }
        } catch {
            // The kernel reports an error once; another sync would only seem to succeed.
            state.withLock { $0.directory = .failed(error) }
            throw error
        }
    }

    private func synchronizeFile() async throws(TowlineError) {
        try await queue.synchronize(file, .data, device: folder.identity.device)
    }

    /// Discards all records of written bytes that are not durable. Called when a sync of the part file failed: the
    /// kernel may have dropped any page that is not durable.
    ///
    /// Discards the records in memory even if those on disk cannot be removed.
    func forgetWhatIsNotDurable() {
        state.withLock { state in
            state.epoch += 1
            for slot in state.slots {
                let run = slot.current
                guard run.lease != 0 || run.end != run.durableEnd else { continue }
                try? slot.replace(start: run.start, end: run.durableEnd, durableEnd: run.durableEnd)
            }
        }
    }

    package func withdraw(_ range: ByteRange) throws(TowlineError) {
        guard !range.isEmpty else { return }
        try state.withLock { (state) throws(TowlineError) in
            var isChanged = false
            for slot in state.slots where slot.current.written.overlaps(range) {
                try cut(range, outOf: slot, &state)
                isChanged = true
            }
            if isChanged { try file.synchronizeData() }
        }
    }

    /// Removes a range from the run of bytes that a slot (one record of the journal) states as written. Moves the
    /// record of the bytes behind the range to another slot. If no slot is free, drops that record: these bytes are
    /// then downloaded again.
    private func cut(_ range: ByteRange, outOf slot: MarkSlot, _ state: inout Records) throws(TowlineError) {
        let run = slot.current
        let keepsLeft = run.start < range.lowerBound
        let keepsRight = range.upperBound < run.end
        let rightDurableEnd = max(range.upperBound, run.durableEnd)
        if keepsRight && keepsLeft {
            var free = state.slots.first { $0.current.isEmpty && $0.current.lease == 0 }
            if free == nil, state.slots.count < marks.slotCount {
                free = MarkSlot(index: state.slots.count, marks: marks)
                if let free { state.slots.append(free) }
            }
            try free?.replace(start: range.upperBound, end: run.end, durableEnd: rightDurableEnd)
            // The old record is removed only when the new one is durable: bytes outside the range must not be lost.
            if rightDurableEnd > range.upperBound { try file.synchronizeData() }
        }
        if keepsLeft {
            try slot.replace(
                start: run.start, end: range.lowerBound, durableEnd: min(run.durableEnd, range.lowerBound))
        } else if keepsRight {
            try slot.replace(start: range.upperBound, end: run.end, durableEnd: rightDurableEnd)
        } else {
            try slot.replace(start: 0, end: 0, durableEnd: 0)
        }
    }

    // MARK: The end

    /// Invalidates the journal durably, with the state `end`, then removes its file. If a power loss restores the file,
    /// it still records no bytes (`docs/on-disk-format.md`, "Retiring a journal").
    func retire(as end: JournalHeader.Validity) throws(TowlineError) {
        try silence(as: end)
        try folder.remove(name)
    }

    /// Invalidates the journal durably, but keeps its file, which identifies the abandoned part file for the next run.
    /// `end` is the new state: `.discarded` makes the next run remove that part file.
    func silence(as end: JournalHeader.Validity) throws(TowlineError) {
        try writeHeader(end)
        try file.synchronizeData()
    }

    /// Invalidates and removes the journal like `retire`, but syncs on another thread. Keeps the file, with a notice,
    /// if the file system does not allow its removal.
    func retireWaiting(as end: JournalHeader.Validity) async throws(TowlineError) {
        try writeHeader(end)
        try await synchronizeFile()
        do {
            try folder.remove(name)
        } catch {
            // The journal makes no claims any more, so its name may stay.
            guard (-(error.systemError ?? EIO)).isLackingOrForbidden else { throw error }
            file.note(.removal)
        }
    }

    private func writeHeader(_ end: JournalHeader.Validity) throws(TowlineError) {
        try state.withLock { (state) throws(TowlineError) in
            state.header.validity = end
            try file.write(state.header.bytes, at: 0)
        }
    }
}
