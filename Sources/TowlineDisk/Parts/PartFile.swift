import Glibc
import Synchronization
package import TowlineCore
internal import TowlineEngine

/// The output of a download to a file. Writes the part file `NAME.tow` next to the final `NAME`, and publishes it under
/// that name.
package final class PartFile: PipeSink {
    let file: Descriptor
    let folder: Folder
    let names: PlaceNames
    let journal: JournalFile?
    let queue: SyncQueue
    /// The URL of the download. Its digest is stored in the mark of the finished file.
    let source: String
    /// The identity of the current boot of the machine. A file that is published without a sync counts as finished only
    /// in this boot.
    let boot: BootIdentity
    /// Files of others that were renamed because this download needs their names. They get their names back when the
    /// download ends.
    let displaced: Displaced
    private let hasher: PrefixHasher
    /// Reserves or counts the disk space of the bytes that are written; `nil` if all space is reserved already or none
    /// must be.
    private let reservation: SpaceReservation?
    /// `false` until the file gets its first name; a small file is created without a name.
    private let isNamed: Atomic<Bool>
    /// `true` if another process published the same bytes under the final name first. This file, a twin of the
    /// published one, is then discarded.
    let hasTwin = Atomic<Bool>(false)
    /// The end offset of the bytes that were written while the file had no name, which is the file's length until it is
    /// named.
    private let unnamedEnd = Atomic<Int64>(0)

    init(
        file: Descriptor, folder: Folder, names: PlaceNames, journal: JournalFile?, queue: SyncQueue,
        source: String, boot: BootIdentity, displaced: Displaced = Displaced(),
        reservation: SpaceReservation? = nil, isNamed: Bool = true
    ) {
        self.file = file
        self.folder = folder
        self.names = names
        self.journal = journal
        self.queue = queue
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

    /// Syncs the file's data, or its data and all metadata (`extent`). Throws a disk error, also if another sync of the
    /// file failed since this one began: the kernel reports a failure to only one of them.
    func synchronize(_ extent: SyncQueue.Extent) async throws(TowlineError) {
        let before = file.failedSyncs.load(ordering: .acquiring)
        try await queue.synchronize(file, extent, device: folder.identity.device)
        guard file.failedSyncs.load(ordering: .acquiring) == before else { throw .synchronizing(file.path, EIO) }
    }

    /// Returns whether a failed sync may have lost any of the first `length` bytes. Without a journal, any failed sync
    /// counts; otherwise only bytes that the journal does not record as written.
    func mayLackBytes(upTo length: Int64) -> Bool {
        guard file.failedSyncs.load(ordering: .acquiring) > 0 else { return false }
        guard let journal else { return true }
        return !journal.written.contains(ByteRange(0, length))
    }

    /// Returns the length of the file in bytes. Throws `diskFailure` if the part file's name no longer leads to it.
    ///
    /// No other process can access a file without a name, so its length is the end of the written bytes.
    func intactLength() throws(TowlineError) -> Int64 {
        hasName ? try intactStatus().size : unnamedEnd.load(ordering: .relaxed)
    }

    package func checkIntact() throws(TowlineError) {
        // Read before the length of the file, which only grows.
        let end = journal?.written.ranges.last?.upperBound ?? 0
        guard try intactStatus().size < end else { return }
        throw shortened
    }

    /// Checks that the part file has no hole before the offset `length`. A program that truncates the file leaves a
    /// hole when later bytes are written behind it. No other process can access a file without a name.
    package func checkIntact(upTo length: Int64) throws(TowlineError) {
        guard hasName else { return }
        guard try intactStatus().size >= length else { throw shortened }
        guard folder.reportsHoles, DataMap.hasHole(file, before: length) else { return }
        // Bytes that are not on the disk yet may be reported as a hole.
        try file.synchronizeAll()
        guard !DataMap.hasHole(file, before: length) else { throw shortened }
    }

    private var shortened: TowlineError {
        lost("another program removed bytes from \(file.path) during the download")
    }

    private func lost(_ reason: String) -> TowlineError {
        TowlineError(
            .diskFailure, reason + ", so the download must start again from the beginning",
            systemError: TowlineError.lostPartNumber)
    }

    /// Returns the status of the part file, such as its length. Throws if the part file was deleted, moved or replaced.
    func intactStatus() throws(TowlineError) -> FileStatus {
        guard hasName else { return try file.status() }
        if let there = try folder.status(of: names.part), there.identity == (try file.identity()) { return there }
        guard try file.status().links > 0 else {
            throw lost("another program deleted \(file.path) during the download")
        }
        throw lost("another program moved or replaced \(file.path) during the download")
    }

    /// `true` if the file has a name in its directory; a small file is created without a name.
    var hasName: Bool { isNamed.load(ordering: .acquiring) }

    /// Gives a file without a name the part file's name `NAME.tow`, so that the next run finds it. Does nothing if the
    /// file has a name. Throws `destinationBusy` if the name is taken.
    func appear() throws(TowlineError) {
        guard !hasName else { return }
        FileMode.close(file, in: folder)
        guard try file.lock(), try name(names.part) else {
            throw .inUse(file.path, by: "another process", systemError: EEXIST)
        }
        isNamed.store(true, ordering: .releasing)
    }

    /// Renames the file to its final name, or names it if it has no name.
    ///
    /// - Returns: `false` if the name is taken; the file then keeps its present name, if any.
    func give(_ name: String) throws(TowlineError) -> Bool {
        guard !hasName else { return try folder.rename(names.part, to: name) }
        guard try self.name(name) else { return false }
        isNamed.store(true, ordering: .releasing)
        return true
    }

    /// Names a file that has no name; returns `false` if the name is taken. If the system refuses to name it
    /// (linkat(2)), a named copy replaces the file.
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

    /// Renames the complete file to `NAME.tow-bad`, because its checksum is wrong, and returns the new path. First
    /// invalidates and removes the journal, so that it records no wrong bytes.
    package func setAside() throws(TowlineError) -> String? {
        _ = try intactStatus()
        try appear()
        try journal?.retire(as: .void)
        // A set-aside file of the same source is replaced: a script that runs each day and always gets a wrong checksum
        // would otherwise fill the disk.
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

    // After a failure, a remaining journal makes no claims, or only true ones.
    package func discard() { try? remove() }

    /// Removes the part file and the journal like `discard`, but throws if one of them cannot be removed. If the part
    /// file stays, so does the journal with its records.
    func remove() throws(TowlineError) {
        defer {
            displaced.restore(in: folder)
            close()
        }
        if isOwn, try folder.names(file, names.part) { try folder.remove(names.part) }
        do throws(TowlineError) {
            try journal?.retire(as: .discarded)
        } catch {
            // A full disk may refuse a change of the journal, but not its removal.
            try folder.remove(names.journal)
        }
    }

    /// `true` if the file is the part file of its journal, according to its inode number or its mark.
    var isOwn: Bool { !isForeign || journal.map { PartMark.of(file, journal: $0.id) == .own } ?? true }

    /// `true` if the journal was created with a different part file. This file may be a copy or belong to the user, so
    /// its bytes are not removed.
    var isForeign: Bool {
        guard let journal, let identity = try? file.identity() else { return false }
        return !journal.part.isSameFile(as: identity)
    }

    /// Ends the reservation of disk space, because no more bytes are written.
    func endReservation() { reservation?.end() }

    package func close() {
        hasher.cancel()
        reservation?.end()
        // The journal is closed first: a sync that fails because the part file is closed must not discard marks. Until
        // the part file is closed, its lock keeps other processes out.
        journal?.file.close()
        file.close()
    }
}
