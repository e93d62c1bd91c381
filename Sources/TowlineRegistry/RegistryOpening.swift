import Glibc
internal import GRDB
internal import TowlineCore
internal import TowlineEngine

/// From files to connections.
struct RegistryOpening: Sendable {
    let directory: StateDirectory
    let migrator: DatabaseMigrator
    let rebuild: SQLiteRegistry.Rebuild

    /// Opens what is there, or makes what is not.
    func open() throws(TowlineError) -> (Connections, [String]) {
        let connections = try connect()
        try directory.note("open")
        return (connections, [])
    }

    func replace(_ reason: String) throws(TowlineError) -> (Connections, [String]) {
        throw TowlineError(.diskFailure, "\(directory.database) is damaged: \(reason)")
    }

    private func connect() throws(TowlineError) -> Connections {
        let file = try FileCall.open(directory.database, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC)
        fchmod(file, 0o600)
        close(file)
        do {
            let connections = try Connections(path: directory.database)
            try migrator.migrate(connections.writer)
            try connections.writer.write { try $0.execute(sql: "UPDATE process SET openings = openings + 1") }
            return connections
        } catch {
            throw RegistryFailure.error(error, directory.database)
        }
    }
}
