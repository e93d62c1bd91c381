import Synchronization

/// The settings that a running service takes over when it reads its configuration again.
final class LiveSettings: Sendable {
    private let values: Mutex<(hosts: HostList, privateAddresses: PrivateAddresses)>

    init(_ configuration: ServiceConfiguration) { values = Mutex(Self.values(configuration)) }

    private static func values(_ configuration: ServiceConfiguration) -> (HostList, PrivateAddresses) {
        (HostList(configuration), configuration.privateAddresses)
    }

    /// The names under which the page may be opened.
    var hosts: HostList { values.withLock { $0.hosts } }
    /// The clients that may download from private addresses.
    var privateAddresses: PrivateAddresses { values.withLock { $0.privateAddresses } }

    func take(_ configuration: ServiceConfiguration) {
        let new = Self.values(configuration)
        values.withLock { $0 = new }
    }
}
