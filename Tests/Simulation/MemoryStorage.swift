import Synchronization
package import TowlineCore
import TowlineDisk
package import TowlineEngine

/// A storage in memory, with crashes and power cuts. `StorageContractTests` holds it to what `FileStorage` does.
package final class MemoryStorage: Storage {
    /// A step that can be made to fail.
    package enum Step: Hashable, Sendable {
        case create
        case write(at: Int64)
        case mark
        case synchronize
        case publish
    }

    /// A file that has its final name.
    package struct File: Sendable {
        /// Its bytes.
        package var bytes: [UInt8]
        /// The URL of its download; `nil`: no download made it.
        package var link: LinkIdentity?
        /// Its modification time, seconds since 1970.
        package var modified: Int64?
        /// The validators that the server sent.
        package var version: PublishedVersion?
        /// A power cut does not take it away.
        package var isDurable = true

        /// Makes a file.
        package init(
            bytes: [UInt8], link: LinkIdentity? = nil, modified: Int64? = nil, version: PublishedVersion? = nil
        ) {
            (self.bytes, self.link, self.modified, self.version) = (bytes, link, modified, version)
        }
    }

    private struct State {
        var files: [String: File] = [:]
        var parts: [String: MemoryPart.Contents] = [:]
        /// The earlier part files, which are not locked.
        var earlier: [String: MemoryPart.Contents] = [:]
        var failure: @Sendable (Step) -> TowlineError? = { _ in nil }
        var bytesInOrder: [UInt8] = []
    }

    private let state = Mutex(State())

    /// Makes an empty storage, in which every directory exists.
    package init() {}

    /// The files that have their final names, by path.
    package var files: [String: File] { state.withLock { $0.files } }

    /// The versions of all part files with a journal, earlier ones last.
    package var versions: [HeldVersion] {
        state.withLock { Array($0.parts.values) + $0.earlier.values }.compactMap(\.version)
    }

    /// The paths of unfinished downloads, without their suffix.
    package var parts: [String] { state.withLock { $0.parts.keys.sorted() } }

    /// Bytes that were written to an output which takes them in order.
    package var bytesInOrder: [UInt8] { state.withLock { $0.bytesInOrder } }

    /// Puts a file there.
    package func put(_ file: File, at path: String) { state.withLock { $0.files[path] = file } }

    /// Decides which steps fail from now on.
    package func fail(_ failure: @escaping @Sendable (Step) -> TowlineError?) {
        state.withLock { $0.failure = failure }
    }

    /// Kills the process: what was written stays, and what was open is closed.
    package func kill() {
        let parts = state.withLock { Array($0.parts.values) }
        for part in parts { part.unlock() }
    }

    /// Cuts the power: of what was not synchronized nothing can be relied on.
    package func losePower() {
        let parts = state.withLock { state in
            state.files = state.files.filter(\.value.isDurable)
            return Array(state.parts.values) + state.earlier.values
        }
        for part in parts { part.losePower() }
    }

    func check(_ step: Step) throws(TowlineError) {
        if let error = state.withLock({ $0.failure(step) }) { throw error }
    }

    // MARK: Looking

    package func survey(_ place: Place, for source: String?, allowsCopies: Bool) throws(TowlineError) -> Survey {
        restoreEarlier(place)
        guard let contents = state.withLock({ $0.parts[place.path] }) else {
            return try survey(named: place, for: source)
        }
        guard contents.lock() else { throw Self.busy(place) }
        guard let journal = contents.journal else {
            // A small part file has no journal, so its bytes are unknown.
            remove(contents, at: place)
            return try survey(named: place, for: source)
        }
        var part = OpenPart(
            sink: MemoryPart(contents, place, self), journal: journal, claims: journal.written,
            source: contents.link.map { link in StoredSource { $0.relation(to: link) } })
        part.earlier = state.withLock { $0.earlier[place.path]?.version }
        return .unfinished(part)
    }

    /// Puts the earlier part file in the place of a part file without bytes.
    private func restoreEarlier(_ place: Place) {
        state.withLock { state in
            guard let earlier = state.earlier[place.path] else { return }
            if let present = state.parts[place.path] {
                guard present.journal?.written.isEmpty ?? true, present.lock() else { return }
            }
            state.parts[place.path] = earlier
            state.earlier[place.path] = nil
        }
    }

    package func removeEarlier(_ place: Place) { state.withLock { $0.earlier[place.path] = nil } }

    package func survey(named place: Place, for source: String?) throws(TowlineError) -> Survey {
        guard let file = files[place.path] else { return .nothing(notices: []) }
        let found = PublishedFile(
            path: place.path, length: Int64(file.bytes.count), modified: file.modified, version: file.version)
        guard let known = file.link else { return .occupied(found) }
        return .finished(found, source: StoredSource { $0.relation(to: known) })
    }

    package func firstBytes(of place: Place) -> [UInt8] { Array(files[place.path]?.bytes.prefix(512) ?? []) }

    package func find(_ link: LinkIdentity, inDirectory directory: String) -> Place? {
        let all = state.withLock { $0.parts.values.filter { $0.journal != nil && $0.place.directory == directory } }
        func first(_ relation: LinkRelation) -> Place? {
            all.first { $0.link.map { link.relation(to: $0) } == relation }?.place
        }
        return first(.same) ?? first(.signedAgain)
    }

    package func seemsVacant(_ place: Place) -> Bool {
        state.withLock { $0.files[place.path] == nil && $0.parts[place.path] == nil }
    }

    package func checkReplaceable(_ place: Place, isReplaced: Bool) throws(TowlineError) {}

    // MARK: Making

    package func create(_ place: Place, record: DownloadRecord, terms: CreateTerms) throws(TowlineError) -> OpenPart {
        try check(.create)
        guard state.withLock({ $0.parts[place.path] == nil }) else { throw Self.busy(place) }
        if terms.requiresFreeName, files[place.path] != nil { throw .occupied(place.path) }
        return open(place, record, terms)
    }

    private func open(_ place: Place, _ record: DownloadRecord, _ terms: CreateTerms) -> OpenPart {
        let journal = terms.journaled ? MemoryJournal(record, self) : nil
        let contents = MemoryPart.Contents(
            place, journal, terms.link ?? (try? HTTPURL(parsing: record.source)).map { LinkIdentity($0) })
        state.withLock { $0.parts[place.path] = contents }
        return OpenPart(sink: MemoryPart(contents, place, self), journal: journal, claims: ByteRangeSet())
    }

    package func publishAtOnce(_ file: SmallFile, at place: Place) async throws(TowlineError) -> SmallFileOutcome {
        guard seemsVacant(place), (try? check(.publish)) != nil else { return .declined }
        var made = File(bytes: file.body.held, link: file.link, modified: file.modified, version: file.version)
        made.isDurable = file.durable
        put(made, at: place.path)
        let length = Int64(made.bytes.count)
        file.body.release()
        return .published(PublishedFile(path: place.path, length: length))
    }

    package func replace(
        _ old: OpenPart, place: Place, record: DownloadRecord, terms: CreateTerms
    ) throws(TowlineError) -> OpenPart {
        try check(.create)
        old.sink.close()
        state.withLock { state in
            let replaced = state.parts.removeValue(forKey: place.path)
            if terms.keepsReplaced, replaced?.journal != nil { state.earlier[place.path] = replaced }
        }
        var part = open(place, record, terms)
        part.earlier = state.withLock { $0.earlier[place.path]?.version }
        return part
    }

    package func prove(_ place: Place, link: LinkIdentity, checksum: Checksum) async throws(TowlineError) -> FileProof {
        guard let file = files[place.path] else { return .refuted(nil) }
        if let mismatch = Self.mismatch(checksum, file.bytes) { return .refuted(mismatch) }
        state.withLock { $0.files[place.path]?.link = link }
        return .proven(PublishedFile(path: place.path, length: Int64(file.bytes.count)))
    }

    package func stream(
        to output: StreamOutput, digesting algorithms: [Checksum.Algorithm]
    ) throws(TowlineError) -> OpenPart {
        OpenPart(sink: MemoryOutput(self), journal: nil, claims: ByteRangeSet())
    }

    package func hasher(for checksum: Checksum) -> any ContentHasher { FileStorage().hasher(for: checksum) }

    static func mismatch(_ checksum: Checksum, _ bytes: [UInt8]) -> ChecksumMismatch? {
        let hasher = FileStorage().hasher(for: checksum)
        bytes.withUnsafeBytes(hasher.update)
        guard !hasher.matches() else { return nil }
        let other = Checksum(algorithm: checksum.algorithm, value: checksum.value.map { ~$0 })
        return ChecksumMismatch(expected: checksum, found: other)
    }

    private static func busy(_ place: Place) -> TowlineError {
        TowlineError(.destinationBusy, "\(place.path).tow is in use")
    }

    // MARK: For parts

    /// Removes an unfinished download, unless another took its place.
    func remove(_ contents: MemoryPart.Contents, at place: Place) {
        state.withLock { state in
            if state.parts[place.path] === contents { state.parts[place.path] = nil }
        }
    }

    func isThere(_ contents: MemoryPart.Contents, at place: Place) -> Bool {
        state.withLock { $0.parts[place.path] === contents }
    }

    func append(_ bytes: UnsafeRawBufferPointer, at offset: Int64) throws(TowlineError) {
        let copy = Array(bytes)
        let isNext = state.withLock { state in
            guard Int64(state.bytesInOrder.count) == offset else { return false }
            state.bytesInOrder += copy
            return true
        }
        guard isNext else { throw TowlineError(.diskFailure, "bytes out of order") }
    }
}

/// An output that takes bytes in order.
private final class MemoryOutput: Sink {
    private let storage: MemoryStorage

    init(_ storage: MemoryStorage) { self.storage = storage }

    func write(_ bytes: UnsafeRawBufferPointer, at offset: Int64) throws(TowlineError) {
        try storage.append(bytes, at: offset)
    }

    func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) throws(TowlineError) -> Int {
        let held = storage.bytesInOrder.dropFirst(Int(offset)).prefix(buffer.count)
        buffer.copyBytes(from: held)
        return held.count
    }

    func synchronize() async throws(TowlineError) {}
    func checkIntact() throws(TowlineError) {}
    func verify(_ checksums: [Checksum], length: Int64) async throws(TowlineError) -> [ChecksumMismatch] {
        checksums.compactMap { MemoryStorage.mismatch($0, Array(storage.bytesInOrder.prefix(Int(length)))) }
    }
    func publish(_ terms: PublishTerms) async throws(TowlineError) -> PublishedFile {
        PublishedFile(path: "-", length: terms.length)
    }
    func setAside() throws(TowlineError) -> String? { nil }
    func discard() {}
    func close() {}
}
