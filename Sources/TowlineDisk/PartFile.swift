import Glibc
import Synchronization
package import TowlineCore
internal import TowlineEngine

/// The sink that is a file beside its final name.
package final class PartFile: PipeSink {
    let file: Descriptor
    let folder: Folder
    let names: PlaceNames
    let journal: JournalFile?
    let queue: SyncQueue
    /// Hears of the final name.
    let index: JournalIndex
    /// What the finished file is marked with: where it came from.
    let source: String
    /// The run of the machine.
    let boot: BootIdentity
    /// Files that get their names back when this one gives up the names of an unfinished download.
    let displaced: Displaced
    private let hasher: PrefixHasher
    /// Takes the space of what is written; `nil` if that is taken, or not to be.
    private let reservation: SpaceReservation?
    /// `false` until it gets its first name.
    private let isNamed: Atomic<Bool>
    /// Another process gave the same bytes the name.
    let hasTwin = Atomic<Bool>(false)
    /// Where the bytes end that were written before.
    private let unnamedEnd = Atomic<Int64>(0)

    init(
        file: Descriptor, folder: Folder, names: PlaceNames, journal: JournalFile?, queue: SyncQueue,
        index: JournalIndex, source: String, boot: BootIdentity, displaced: Displaced = Displaced(),
        reservation: SpaceReservation? = nil,
        isNamed: Bool = true
    ) {
        self.file = file
        self.folder = folder
        self.names = names
        self.journal = journal
        self.queue = queue
        self.index = index
        self.source = source
        self.boot = boot
        self.displaced = displaced
        self.reservation = reservation
        hasher = PrefixHasher(file: file)
        self.isNamed = Atomic(isNamed)
    }

    package func write(_ bytes: UnsafeRawBufferPointer, at offset: Int64) throws(TowlineError) {
        try reservation?.cover(offset, bytes.count, of: file)
        try file.write(bytes, at: offset)
        note(bytes.count, at: offset)
    }

    package func write(from pipe: Int32, count: Int, at offset: Int64) throws(TowlineError) {
        try reservation?.cover(offset, count, of: file)
        try file.write(from: pipe, count: count, at: offset)
        note(count, at: offset)
    }

    package var takesPipes: Bool { !file.refusesPipes.load(ordering: .relaxed) }

    private func note(_ count: Int, at offset: Int64) {
        if !hasName { unnamedEnd.max(offset + Int64(count), ordering: .relaxed) }
    }

    package func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) throws(TowlineError) -> Int {
        try file.read(into: buffer, at: offset)
    }

    package func synchronize() async throws(TowlineError) { try await synchronize(.data) }

    package func promiseSpace() throws(TowlineError) {
        if let reservation, reservation.rest > 0 { try reservation.promise(in: folder) }
    }

    package func startWriteback() { queue.startWriteback(of: file, device: folder.identity.device) }

    /// A success that began before another sync failed is no success: the failure was reported to that one alone.
    func synchronize(_ extent: SyncQueue.Extent) async throws(TowlineError) {
        let before = file.failedSyncs.load(ordering: .acquiring)
        try await queue.synchronize(file, extent, device: folder.identity.device)
        guard file.failedSyncs.load(ordering: .acquiring) == before else { throw .synchronizing(file.path, EIO) }
    }

    /// Whether bytes may have been dropped that nobody wrote again, as far as can be told.
    func mayLackBytes(upTo length: Int64) -> Bool {
        guard file.failedSyncs.load(ordering: .acquiring) > 0 else { return false }
        guard let journal else { return true }
        return !journal.written.contains(ByteRange(0, length))
    }

    /// The length of what is to be published, if that is still its own file.
    ///
    /// Nobody else comes to a file without a name: what was written to it is there.
    func intactLength() throws(TowlineError) -> Int64 {
        hasName ? try intactStatus().size : unnamedEnd.load(ordering: .relaxed)
    }

    package func checkIntact() throws(TowlineError) { _ = try intactStatus() }

    /// What the file is under its name, if that is still its own.
    func intactStatus() throws(TowlineError) -> FileStatus {
        guard hasName else { return try file.status() }
        if let there = try folder.status(of: names.part), there.identity == (try file.identity()) { return there }
        guard try file.status().links > 0 else {
            throw TowlineError(
                .diskFailure,
                "another program deleted \(file.path) during the download, "
                    + "so the download must start again from the beginning",
                systemError: ENOENT)
        }
        throw TowlineError(
            .diskFailure,
            "another program moved or replaced \(file.path) during the download, "
                + "so the download must start again from the beginning",
            systemError: ESTALE)
    }

    /// Whether a name leads to it.
    var hasName: Bool { isNamed.load(ordering: .acquiring) }

    /// Gives a file without a name that of a part file, if it is free: what comes next finds it there.
    func appear() throws(TowlineError) {
        guard !hasName else { return }
        FileMode.close(file, in: folder)
        guard try file.lock(), try name(names.part) else {
            throw .inUse(file.path, by: "another process", systemError: EEXIST)
        }
        isNamed.store(true, ordering: .releasing)
    }

    /// Gives it another name than that of a part file.
    ///
    /// - Returns: whether the name was free.
    func give(_ name: String) throws(TowlineError) -> Bool {
        guard !hasName else { return try folder.rename(names.part, to: name) }
        guard try self.name(name) else { return false }
        isNamed.store(true, ordering: .releasing)
        return true
    }

    /// Gives a file without a name one. Where that cannot be done (linkat(2)), a copy takes its place.
    private func name(_ name: String) throws(TowlineError) -> Bool {
        do {
            return try folder.name(file, name)
        } catch {
            guard (-(error.systemError ?? EIO)).isLackingOrForbidden else { throw error }
            guard let copy = try folder.createPart(names.part) else {
                throw .inUse(file.path, by: "another process", systemError: EEXIST)
            }
            do throws(TowlineError) {
                guard try copy.lock() else { throw LockOwner.busy(copy) }
                try copy.take(file, length: unnamedEnd.load(ordering: .relaxed))
                let isGiven = if name == names.part { true } else { try folder.rename(names.part, to: name) }
                guard isGiven else {
                    try folder.remove(names.part)
                    return false
                }
            } catch {
                try? folder.remove(names.part)
                throw error
            }
            try file.become(copy)
            copy.close()
            return true
        }
    }

    package func verify(_ checksums: [Checksum], length: Int64) async throws(TowlineError) -> [ChecksumMismatch] {
        guard !checksums.isEmpty else { return [] }
        let hasher = hasher
        let result = await withTaskCancellationHandler {
            await hasher.mismatches(checksums, length: length)
        } onCancel: {
            hasher.cancel()
        }
        return try result.get()
    }

    package func hashAhead(_ algorithms: [Checksum.Algorithm], upTo end: Int64) { hasher.advance(algorithms, to: end) }

    package func forgetHashed() { hasher.forget() }

    package func truncate(to length: Int64) throws(TowlineError) { try file.truncate(to: length) }

    /// The journal is retired first: bytes that are whole and wrong must not be claimed by anybody.
    package func setAside() throws(TowlineError) -> String? {
        try checkIntact()
        try appear()
        try journal?.retire(as: .void)
        // Those that an earlier run fetched of the same are worth no second place: a wrong checksum in a script that is run
        // each day would fill the disk.
        let earlier = try? folder.open(names.bad, readOnly: true)
        var name = names.bad
        if let earlier, FinishedMark.isRefuted(earlier, source: source) {
            try folder.rename(names.part, over: name)
        } else {
            name = try folder.rename(names.part, toFreeNameLike: name)
        }
        FinishedMark.putRefuted(on: file, source: source)
        displaced.restore(in: folder)
        close()
        return folder.path(of: name)
    }

    package func discard() {
        // Best effort by contract. What stays after a failure claims nothing, or is claimed truly.
        try? journal?.retire(as: .discarded)
        if !isForeign, (try? folder.names(file, names.part)) == true { try? folder.remove(names.part) }
        displaced.restore(in: folder)
        close()
    }

    /// The journal describes another file: this one may be a copy of it, or a user's. Its bytes are not removed.
    var isForeign: Bool {
        guard let journal, let identity = try? file.identity() else { return false }
        return !journal.part.isSameFile(as: identity)
    }

    package func close() {
        hasher.cancel()
        reservation?.end()
        // The journal first: a sync that finds the part file closed is no failed one, and must not unmark anything. Until
        // the part file's lock is gone nobody else comes.
        journal?.file.close()
        file.close()
    }
}
