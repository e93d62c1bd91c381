import TowlineCore

/// Reports failed accesses of the registry, the database of all downloads, in the background, where no caller waits for
/// the error.
struct RegistryFailures: Sendable {
    /// The interval between two attempts to access the registry after a failed one.
    static let retryInterval = Duration.seconds(1)

    let hub: SnapshotHub
    let onTrouble: (@Sendable (TowlineError) -> Void)?

    /// Reports a failed access of the registry to the readers of events and to `Configuration.onTrouble`.
    func report(_ error: TowlineError) {
        hub.publish(.troubled(error))
        onTrouble?(error)
    }
}
