import TowlineCore

/// The reports of registry accesses that failed in the background, where no caller waits for the error. The registry is
/// the database of all downloads.
struct RegistryFailures: Sendable {
    /// The interval between two attempts to access the registry after a failure.
    static let retryInterval = Duration.seconds(1)

    let hub: SnapshotHub
    let onTrouble: (@Sendable (TowlineError) -> Void)?

    /// Reports a failure to the readers of events and to `Configuration.onTrouble`.
    func report(_ error: TowlineError) {
        hub.publish(.troubled(error))
        onTrouble?(error)
    }
}
