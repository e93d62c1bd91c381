import Dispatch
import Synchronization
internal import GRDB
package import TowlineCore
package import TowlineEngine

/// A registry in an SQLite database: `registry.sqlite` in its own state directory, or a database in memory.
///
/// One process at a time can open it. A write that returned is synced; reads return committed data. Calls block only
/// the registry's dispatch queues, never the caller's thread. Cancelling the caller's task does not undo a write.
package final class SQLiteRegistry: Registry {
    /// The directory of the database, and the way to open and repair it; `nil` for a database in memory.
    let directory: StateDirectory?
    private let opening: RegistryOpening?
    private let commits = CommitQueue()
    private let writing = DispatchQueue(label: "towline.registry.writing")
    private let reading = DispatchQueue(label: "towline.registry.reading")
    private let searching = DispatchQueue(label: "towline.registry.searching")
    /// True while the log may contain secrets that the database no longer contains.
    private let holdsOldSecrets = Atomic(false)
    private let state: Mutex<OpenDatabase>
    /// Notices a deleted, replaced or truncated database that no write would notice; `nil` in memory and after closing.
    private let watch = Mutex<DirectoryWatch?>(nil)

    /// The connections to the database, and the messages about damage that was found.
    private struct OpenDatabase {
        /// The open connections; `nil` after closing.
        var connections: Connections?
        /// The files of the database after the last call that writes.
        var files: [RegistryOpening.OpenFile] = []
        var notices: [String]
        /// The function that is called with each later notice.
        var report: (@Sendable (String) -> Void)?
    }

    /// A function that returns the downloads of the journals in the given directories, for a database that was lost.
    package typealias Rebuild = @Sendable (_ directories: [String]) -> [RegisteredDownload]

    /// Messages for the user since the registry was opened: a damaged database was set aside, downloads were rebuilt.
    /// Any later call may find damage; the call then continues with the new database and adds a message.
    package var notices: [String] { state.withLock { $0.notices } }

    /// Sets the function that is called with each message that is added to `notices` from now on.
    package func onNotice(_ report: @escaping @Sendable (String) -> Void) { state.withLock { $0.report = report } }

    /// Returns the directories of the downloads in a state directory, without opening the registry.
    package static func knownDirectories(inState path: String) -> [String] {
        StateDirectory.knownDirectories(in: path).sorted()
    }

    /// The version of SQLite, as NAME/VERSION.
    ///
    /// Opens no database, because that would start threads.
    package static var libraryVersion: String {
        let number = Database.sqliteLibVersionNumber
        return "SQLite/\(number / 1_000_000).\(number / 1000 % 1000).\(number % 1000)"
    }

    /// Opens the registry in `stateDirectory`, and creates the directory if needed.
    ///
    /// Sets a damaged database aside and rebuilds it from its readable rows and the result of `rebuild`, with a notice.
    /// Throws `registryBusy` if another process has it open, `unsupportedRegistry` if a newer version wrote it (the
    /// files stay unchanged), `diskPermission` if it is not writable.
    package static func open(stateDirectory: String, rebuild: @escaping Rebuild) async throws(TowlineError)
        -> SQLiteRegistry
    {
        try await open(stateDirectory: stateDirectory, rebuild: rebuild, migrator: RegistrySchema.migrator)
    }

    static func open(stateDirectory: String, rebuild: @escaping Rebuild, migrator: DatabaseMigrator)
        async throws(TowlineError) -> SQLiteRegistry
    {
        let result: Result<SQLiteRegistry, TowlineError> = await withCheckedContinuation { continuation in
            DispatchQueue.global().async {
                continuation.resume(
                    returning: Result { () throws(TowlineError) in
                        try SQLiteRegistry(stateDirectory: stateDirectory, rebuild: rebuild, migrator: migrator)
                    })
            }
        }
        return try result.get()
    }

    private init(stateDirectory: String, rebuild: @escaping Rebuild, migrator: DatabaseMigrator) throws(TowlineError) {
        let directory = try StateDirectory(stateDirectory)
        let opening = RegistryOpening(directory: directory, migrator: migrator, rebuild: rebuild)
        (self.directory, self.opening) = (directory, opening)
        let hasOldLog = FileCall.size(path: directory.log) > 0
        let (connections, notices) = try opening.open()
        state = Mutex(OpenDatabase(connections: connections, files: opening.files, notices: notices))
        directory.reserveSpace()
        let watch = DirectoryWatch(stateDirectory, queue: writing) { [weak self] in
            // After an error, the next write tries again and reports the error.
            _ = try? self?.placedConnections()
        }
        self.watch.withLock { $0 = watch }
        // An earlier process may have ended before it emptied the log.
        if hasOldLog { emptyLogSoon() }
    }

    /// Creates an empty registry in memory. It writes no file, and its list is gone when it closes.
    package init() throws(TowlineError) {
        (directory, opening) = (nil, nil)
        do {
            let connections = try Connections()
            try RegistrySchema.migrator.migrate(connections.writer)
            state = Mutex(OpenDatabase(connections: connections, notices: []))
        } catch {
            throw RegistryFailure.error(error, Self.memory)
        }
    }

    deinit { shutDown() }

    /// The place of a database in memory, for messages.
    private static let memory = "in memory"

    /// The path of the database, for messages.
    private var path: String { directory?.database ?? Self.memory }

    package func close() async {
        await withCheckedContinuation { continuation in
            writing.async {
                self.shutDown()
                continuation.resume()
            }
        }
    }

    /// Closes the database. Writes `closed` to the lock file first, so that a missing log is not mistaken for a lost
    /// one.
    private func shutDown() {
        let connections = state.withLock { state in
            defer { state.connections = nil }
            return state.connections
        }
        watch.withLock { $0 = nil }
        guard let connections else { return }
        try? directory?.note("closed")
        connections.close()
        directory?.release()
    }

    private func connections() throws(TowlineError) -> Connections {
        guard let connections = state.withLock({ $0.connections }) else {
            throw RegistryFailure.closed(path)
        }
        return connections
    }

    // MARK: Writing

    /// Runs `body` in a transaction and returns when the transaction is durable. Shares the transaction with other
    /// callers unless `count`, the number of changed downloads, is above 50. `body` may run a second time, after a
    /// rollback.
    func write<Value: Sendable>(
        changing count: Int = 1, _ body: @escaping @Sendable (Database) throws -> Value
    ) async throws(TowlineError) -> Value {
        let result: Result<Value, any Error> = await withCheckedContinuation { continuation in
            let write = CommitQueue.Write(
                isAlone: count > 50,
                perform: { database in
                    let value = try body(database)
                    return { continuation.resume(returning: .success(value)) }
                },
                fail: { continuation.resume(returning: .failure($0)) })
            if commits.add(write) { writing.async { self.commitAll() } }
        }
        do { return try result.get() } catch { throw RegistryFailure.error(error, path) }
    }

    private func commitAll() {
        while true {
            let writes = commits.take()
            if writes.isEmpty { return }
            do {
                let ends = try mended { try CommitQueue.commit(writes, to: $0.writer) }
                _ = try placedConnections()
                for end in ends { end() }
            } catch {
                for write in writes { write.fail(error) }
            }
        }
    }

    /// Runs `body`. If the database proves damaged, rebuilds it and runs `body` once more. Called only on `writing`.
    private func mended<Value>(_ body: (Connections) throws -> Value) throws -> Value {
        let connections = try placedConnections()
        do { return try body(connections) } catch let error where RegistryFailure.isDamage(error) {
            return try body(try replace(connections))
        }
    }

    /// Replaces the damaged database by a rebuilt one, unless another call did so before. Returns the new connections.
    private func replace(_ damaged: Connections) throws(TowlineError) -> Connections {
        let current = try placedConnections()
        if current !== damaged { return current }
        guard let opening else { throw RegistryFailure.error(DamagedRow(), path) }
        return try rebuild(damaged, opening)
    }

    private func rebuild(_ damaged: Connections, _ opening: RegistryOpening) throws(TowlineError) -> Connections {
        damaged.close()
        do {
            return use(try opening.replace(RegistryOpening.invalidPage), opening)
        } catch {
            state.withLock { $0.connections = nil }
            directory?.release()
            throw error
        }
    }

    /// Returns the open connections. If the files of the database were deleted, replaced or truncated, first writes
    /// them again, so that a reported success is on the disk. Called only on `writing`.
    private func placedConnections() throws(TowlineError) -> Connections {
        let open = try connections()
        guard let opening else { return open }
        let files = opening.files
        let isWhole = state.withLock { state in
            guard zip(files, state.files).allSatisfy({ $0.isWhole(since: $1) }) else { return false }
            state.files = files
            return true
        }
        if isWhole { return open }
        let connections: Connections
        do {
            connections = use(try opening.rewrite(open), opening)
        } catch let error where RegistryFailure.isDamage(error) {
            connections = try rebuild(open, opening)
        } catch {
            throw RegistryFailure.error(error, path)
        }
        watch.withLock { $0 }?.follow(opening.directory.path)
        return connections
    }

    /// Stores the connections to a repaired database, and reports its notices.
    private func use(_ repaired: (Connections, [String]), _ opening: RegistryOpening) -> Connections {
        let (connections, notices) = repaired
        let report = state.withLock { state in
            (state.connections, state.files) = (connections, opening.files)
            state.notices += notices
            return state.report
        }
        for notice in notices { report?(notice) }
        return connections
    }

    /// Merges the whole log into the database and empties the log, so that the log contains no removed data.
    func emptyLog() async throws(TowlineError) {
        if directory == nil { return }
        let result: Result<Void, any Error> = await withCheckedContinuation { continuation in
            writing.async {
                continuation.resume(
                    returning: Result {
                        try self.mended { connections in
                            _ = try connections.writer.writeWithoutTransaction { try $0.checkpoint(.truncate) }
                            self.state.withLock { $0.files = self.opening?.files ?? [] }
                        }
                    })
            }
        }
        do { try result.get() } catch { throw RegistryFailure.error(error, path) }
    }

    /// Empties the log a second later: a download has finished, or its options were changed, and the log still contains
    /// the old secrets. More calls in this second change nothing. While another connection reads from the log, tries
    /// again each second, and does not delay writes.
    func emptyLogSoon() {
        if directory == nil || holdsOldSecrets.exchange(true, ordering: .relaxed) { return }
        writing.asyncAfter(deadline: .now() + 1) { [weak self] in
            guard let self, let connections = try? self.placedConnections() else { return }
            self.holdsOldSecrets.store(false, ordering: .relaxed)
            do {
                try connections.emptyLogUnlessBusy()
                self.state.withLock { $0.files = self.opening?.files ?? [] }
            } catch  where RegistryFailure.isBusy(error) {
                self.emptyLogSoon()
            } catch {
                // The next write reports the error, and the log is emptied when the registry is closed.
            }
        }
    }

    // MARK: Reading

    /// Reads from one snapshot of the database. `walks` selects the connection for reads that may scan the whole list.
    func read<Value: Sendable>(walks: Bool = false, _ body: @escaping @Sendable (Database) throws -> Value)
        async throws(TowlineError) -> Value
    {
        let result: Result<Value, any Error> = await withCheckedContinuation { continuation in
            (walks ? searching : reading).async {
                let result = Result {
                    let connections = try self.connections()
                    do {
                        return try (walks ? connections.searcher : connections.reader).read(body)
                    } catch let error where RegistryFailure.isDamage(error) {
                        let replaced = try self.writing.sync { () throws(TowlineError) in try self.replace(connections)
                        }
                        return try replaced.reader.read(body)
                    }
                }
                continuation.resume(returning: result)
            }
        }
        do { return try result.get() } catch { throw RegistryFailure.error(error, path) }
    }
}
