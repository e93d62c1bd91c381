import Glibc
import Synchronization
internal import TowlineCore
import TowlineDisk
internal import TowlineEngine

/// The bytes of an unfinished download of `MemoryStorage`, for the transfer that has its lock.
final class MemoryPart: Sink {
    /// The state that outlives a closed part.
    final class Contents: Sendable {
        private struct State {
            let bytes = GrowingBytes()
            var unsynchronized = ByteRangeSet()
            /// Counts those who took the lock: a part that was open before a crash may do nothing more.
            var holder = 1
            var isLocked = true
        }

        let place: Place
        let journal: MemoryJournal?
        let link: LinkIdentity?
        private let state = Mutex(State())

        init(_ place: Place, _ journal: MemoryJournal?, _ link: LinkIdentity?) {
            (self.place, self.journal, self.link) = (place, journal, link)
        }

        /// The number of the current lock.
        var holder: Int { state.withLock { $0.holder } }

        /// The first bytes, `length` at most.
        func prefix(_ length: Int64) -> [UInt8] { read(at: 0, count: Int(length)) }

        var count: Int { state.withLock { $0.bytes.count } }

        var version: HeldVersion? {
            journal.map { HeldVersion($0.record.representation, count: $0.written.count) }
        }

        /// Returns `false` if somebody has the lock.
        func lock() -> Bool {
            state.withLock { state in
                guard !state.isLocked else { return false }
                state.isLocked = true
                state.holder += 1
                return true
            }
        }

        func unlock() {
            state.withLock { state in
                state.isLocked = false
                state.holder += 1
            }
            journal?.end()
        }

        func losePower() {
            state.withLock { state in
                for range in state.unsynchronized.ranges {
                    state.bytes.fill(Int(range.lowerBound)..<Int(range.upperBound), with: 0xA5)
                }
                state.unsynchronized = ByteRangeSet()
            }
            unlock()
            journal?.losePower()
        }

        func write(_ new: [UInt8], at offset: Int64) {
            state.withLock { state in
                state.bytes.write(new, at: Int(offset))
                state.unsynchronized.insert(ByteRange(offset, offset + Int64(new.count)))
            }
        }

        func read(at offset: Int64, count: Int) -> [UInt8] {
            state.withLock { $0.bytes.read(at: Int(offset), count: count) }
        }

        func synchronize() { state.withLock { $0.unsynchronized = ByteRangeSet() } }
    }

    private let contents: Contents
    private let place: Place
    private let storage: MemoryStorage
    private let holder: Int

    init(_ contents: Contents, _ place: Place, _ storage: MemoryStorage) {
        (self.contents, self.place, self.storage) = (contents, place, storage)
        holder = contents.holder
    }

    private var isOpen: Bool { contents.holder == holder }

    private func checkOpen() throws(TowlineError) {
        guard isOpen else { throw .closed(place.path + ".tow") }
    }

    func write(_ bytes: UnsafeRawBufferPointer, at offset: Int64) throws(TowlineError) {
        try checkOpen()
        try storage.check(.write(at: offset))
        contents.write(Array(bytes), at: offset)
    }

    func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) throws(TowlineError) -> Int {
        try checkOpen()
        let held = contents.read(at: offset, count: buffer.count)
        buffer.copyBytes(from: held)
        return held.count
    }

    func synchronize() async throws(TowlineError) {
        try checkOpen()
        try storage.check(.synchronize)
        contents.synchronize()
    }

    func checkIntact() throws(TowlineError) {
        guard storage.isThere(contents, at: place) else {
            throw TowlineError(.diskFailure, "\(place.path).tow was removed")
        }
    }

    func verify(_ checksums: [Checksum], length: Int64) async throws(TowlineError) -> [ChecksumMismatch] {
        try checkOpen()
        let bytes = contents.prefix(length)
        return checksums.compactMap { MemoryStorage.mismatch($0, bytes) }
    }

    func publish(_ terms: PublishTerms) async throws(TowlineError) -> PublishedFile {
        try checkOpen()
        try checkIntact()
        try storage.check(.publish)
        if terms.durable { try await synchronize() }
        guard contents.count >= Int(terms.length) else {
            throw TowlineError(.diskFailure, "\(place.path).tow is incomplete")
        }
        guard let path = try path(terms) else {
            let present = storage.files[place.path]?.bytes.count ?? 0
            discard()
            return PublishedFile(path: place.path, length: Int64(present), isForeign: true)
        }
        var file = MemoryStorage.File(
            bytes: contents.prefix(terms.length), link: contents.link, modified: terms.modified,
            version: terms.version)
        file.isDurable = terms.durable
        storage.put(file, at: path)
        discard()
        return PublishedFile(path: path, length: terms.length)
    }

    /// Returns the path for the file; `nil` if the present file stays.
    private func path(_ terms: PublishTerms) throws(TowlineError) -> String? {
        let files = storage.files
        guard let present = files[place.path] else { return place.path }
        let isOwn = present.link.flatMap { terms.link?.relation(to: $0) } == .same
        switch isOwn ? terms.existing : terms.existing.forOtherFiles(isUsersName: terms.isUsersName) {
        case .overwrite, .update: return place.path
        case .skip: return nil
        case .fail: throw .occupied(place.path)
        case .rename:
            for number in 1..<10_000 {
                let other = Place(directory: place.directory, name: SafeFileName.numbered(place.name, number)).path
                if files[other] == nil { return other }
            }
            throw .occupied(place.path)
        }
    }

    func setAside() throws(TowlineError) -> String? {
        try checkOpen()
        let path = place.path + ".tow-bad"
        storage.put(MemoryStorage.File(bytes: contents.prefix(.max)), at: path)
        discard()
        return path
    }

    func discard() {
        guard isOpen else { return }
        storage.remove(contents, at: place)
        contents.unlock()
    }

    func close() {
        guard isOpen else { return }
        contents.unlock()
    }
}

/// Bytes that grow. Copied by memcpy: loops over bytes are slow in a debug build.
private final class GrowingBytes {
    private(set) var count = 0
    private var capacity = 0
    private var start: UnsafeMutableRawPointer?

    func write(_ bytes: [UInt8], at offset: Int) {
        let end = offset + bytes.count
        if end > capacity {
            let larger = max(end, 2 * capacity)
            start = realloc(start, larger)
            capacity = larger
        }
        guard let start else { return }
        if offset > count { memset(start + count, 0, offset - count) }
        bytes.withUnsafeBytes { if let source = $0.baseAddress { memcpy(start + offset, source, bytes.count) } }
        count = max(count, end)
    }

    func read(at offset: Int, count: Int) -> [UInt8] {
        let found = max(0, min(count, self.count - offset))
        return [UInt8](unsafeUninitializedCapacity: found) { buffer, made in
            if found > 0, let start, let target = buffer.baseAddress { memcpy(target, start + offset, found) }
            made = found
        }
    }

    func fill(_ range: Range<Int>, with byte: CInt) {
        let part = range.clamped(to: 0..<count)
        if let start { memset(start + part.lowerBound, byte, part.count) }
    }

    deinit { free(start) }
}

/// The journal of an unfinished download of `MemoryStorage`.
final class MemoryJournal: Journal {
    private struct State {
        var record: DownloadRecord
        var written = ByteRangeSet()
        var durable = ByteRangeSet()
        /// Slots of an older lease mark nothing.
        var lease = 1
        var slots = 0
    }

    /// As many as a journal file has.
    static let mostSlots = 128

    private let state: Mutex<State>
    /// Unowned, because the storage owns this journal.
    private unowned let storage: MemoryStorage

    init(_ record: DownloadRecord, _ storage: MemoryStorage) {
        state = Mutex(State(record: record))
        self.storage = storage
    }

    var record: DownloadRecord { state.withLock { $0.record } }
    var durable: ByteRangeSet { state.withLock { $0.durable } }
    var written: ByteRangeSet { state.withLock { $0.written } }

    func update(_ record: DownloadRecord) throws(TowlineError) { state.withLock { $0.record = record } }

    func adoptPart(_ sink: any Sink) throws(TowlineError) {}

    func claimSlot(at offset: Int64) throws(TowlineError) -> (any JournalSlot)? {
        let lease = state.withLock { state -> Int? in
            guard state.slots < Self.mostSlots else { return nil }
            state.slots += 1
            return state.lease
        }
        return lease.map { Slot(self, from: offset, lease: $0) }
    }

    func release(_ slot: any JournalSlot) { state.withLock { $0.slots = max(0, $0.slots - 1) } }

    func checkpoint(_ sink: any Sink) async throws(TowlineError) {
        let snapshot = written
        do throws(TowlineError) {
            try await sink.synchronize()
        } catch {
            state.withLock { state in
                state.written = state.durable
                state.lease += 1
            }
            throw error
        }
        state.withLock { state in
            state.durable.formUnion(snapshot)
            // Ranges that were withdrawn during the sync are not durable.
            for range in snapshot.ranges {
                for gap in state.written.gaps(in: range) { state.durable.remove(gap) }
            }
        }
    }

    func withdraw(_ range: ByteRange) throws(TowlineError) {
        state.withLock { state in
            state.written.remove(range)
            state.durable.remove(range)
            state.lease += 1
        }
    }

    /// The process ended.
    func end() {
        state.withLock { state in
            state.lease += 1
            state.slots = 0
        }
    }

    /// Marks of bytes that are not durable count only until the machine starts again.
    func losePower() { state.withLock { $0.written = $0.durable } }

    private func mark(_ range: ByteRange, lease: Int) throws(TowlineError) {
        try storage.check(.mark)
        state.withLock { state in
            if state.lease == lease { state.written.insert(range) }
        }
    }

    private final class Slot: JournalSlot {
        private let journal: MemoryJournal
        private let start: Int64
        private let lease: Int

        init(_ journal: MemoryJournal, from start: Int64, lease: Int) {
            (self.journal, self.start, self.lease) = (journal, start, lease)
        }

        func mark(upTo offset: Int64) throws(TowlineError) {
            guard offset > start else { return }
            try journal.mark(ByteRange(start, offset), lease: lease)
        }
    }
}
