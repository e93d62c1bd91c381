import Dispatch
import Synchronization
internal import GRDB
package import TowlineCore
package import TowlineEngine

/// The registry in an SQLite database, `registry.sqlite` in a state directory of its own.
///
/// One process at a time has it. Every write that returned is synced; what is read was committed. Blocking happens on
/// dispatch queues of its own, never on the caller's thread; cancelling the caller's task does not take a write back.
package final class SQLiteRegistry: Registry {
    let directory: StateDirectory
    private let opening: RegistryOpening
    private let commits = CommitQueue()
    private let writing = DispatchQueue(label: "towline.registry.writing")
    private let reading = DispatchQueue(label: "towline.registry.reading")
    private let searching = DispatchQueue(label: "towline.registry.searching")
    private let state: Mutex<State>

    private struct State {
        /// `nil` once it is closed.
        var connections: Connections?
        var notices: [String]
    }

    /// What makes downloads of the journals that lie in directories, when the database was lost.
    package typealias Rebuild = @Sendable (_ directories: [String]) -> [RegisteredDownload]

    package var notices: [String] { state.withLock { $0.notices } }

    /// The directories that the list in a state directory uses, without opening it.
    package static func knownDirectories(inState path: String) -> [String] {
        StateDirectory.knownDirectories(in: path).sorted()
    }

    /// The version of SQLite, as NAME/VERSION.
    ///
    /// No database is opened for it, which would start threads.
    package static var libraryVersion: String {
        let number = Database.sqliteLibVersionNumber
        return "SQLite/\(number / 1_000_000).\(number / 1000 % 1000).\(number % 1000)"
    }

    /// Opens the registry in `stateDirectory`, which is made if it is not there.
    ///
    /// A damaged database is set aside and made anew of what can still be read in it and of what `rebuild` finds, with
    /// a notice. Throws `registryBusy` if another process has it, `unsupportedRegistry` if a newer version wrote it (it
    /// is left as it is), `diskPermission` where it cannot be written.
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
        directory = try StateDirectory(stateDirectory)
        opening = RegistryOpening(directory: directory, migrator: migrator, rebuild: rebuild)
        let (connections, notices) = try opening.open()
        state = Mutex(State(connections: connections, notices: notices))
    }

    deinit { shutDown() }

    package func close() async {
        await withCheckedContinuation { continuation in
            writing.async {
                self.shutDown()
                continuation.resume()
            }
        }
    }

    /// The lock file is told first: a log that is gone after that was not lost.
    private func shutDown() {
        let connections = state.withLock { state in
            defer { state.connections = nil }
            return state.connections
        }
        guard let connections else { return }
        try? directory.note("closed")
        connections.close()
        directory.release()
    }

    private func connections() throws(TowlineError) -> Connections {
        guard let connections = state.withLock({ $0.connections }) else {
            throw RegistryFailure.closed(directory.database)
        }
        return connections
    }

    // MARK: Writing

    /// Does `body` in a transaction, with those of other callers unless it changes many downloads, and returns when
    /// it is durable. `body` may be done a second time, after a rollback.
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
        do { return try result.get() } catch { throw RegistryFailure.error(error, directory.database) }
    }

    private func commitAll() {
        while true {
            let writes = commits.take()
            if writes.isEmpty { return }
            do {
                let ends = try mended { try CommitQueue.commit(writes, to: $0.writer) }
                for end in ends { end() }
            } catch {
                for write in writes { write.fail(error) }
            }
        }
    }

    /// On `writing` alone: with a database that proves to be damaged rebuilt and tried once more.
    private func mended<Value>(_ body: (Connections) throws -> Value) throws -> Value {
        let connections = try connections()
        do { return try body(connections) } catch let error where RegistryFailure.isDamage(error) {
            return try body(try replace(connections))
        }
    }

    /// Sets the damaged database aside, unless somebody did already.
    private func replace(_ damaged: Connections) throws(TowlineError) -> Connections {
        let current = try connections()
        if current !== damaged { return current }
        damaged.close()
        do {
            let (connections, notices) = try opening.replace(RegistryOpening.invalidPage)
            state.withLock { state in
                state.connections = connections
                state.notices += notices
            }
            return connections
        } catch {
            state.withLock { $0.connections = nil }
            directory.release()
            throw error
        }
    }

    /// Brings the whole log into the database and makes it empty, so that nothing removed stays in it.
    func emptyLog() async throws(TowlineError) {
        let result: Result<Void, any Error> = await withCheckedContinuation { continuation in
            writing.async {
                continuation.resume(
                    returning: Result {
                        try self.mended { connections in
                            _ = try connections.writer.writeWithoutTransaction { try $0.checkpoint(.truncate) }
                        }
                    })
            }
        }
        do { try result.get() } catch { throw RegistryFailure.error(error, directory.database) }
    }

    // MARK: Reading

    /// Reads from one state of the database. What may walk the whole list goes another way than what is quick.
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
        do { return try result.get() } catch { throw RegistryFailure.error(error, directory.database) }
    }
}
