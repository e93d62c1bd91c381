/// Limits the downloads that run at once: in total, for each host and for each group.
///
/// The caller reports each download that starts or ends. Waiting downloads are not stored here, so a million of them
/// cost nothing; the caller that stores them selects the first one that is not blocked.
package struct Admission: Hashable, Sendable {
    /// The host and group whose limits a download counts against.
    package struct Share: Hashable, Sendable {
        /// The `scheme://host:port` of the download's URL.
        package var host: String
        /// The download's group; `nil` if it has no group.
        package var group: String?

        /// Creates a share.
        package init(host: String, group: String? = nil) {
            self.host = host
            self.group = group
        }
    }

    /// The maximum number of downloads that run at once, in total.
    package var limit: Int
    /// The maximum number for each host.
    package var hostLimit: Int
    /// The maximum number for each group that has a limit; 0 stops all downloads of a group.
    package var groupLimits: [String: Int]
    /// The number of downloads that run.
    package private(set) var running = 0
    private var hosts: [String: Int] = [:]
    private var groups: [String: Int] = [:]

    /// Creates an admission without running downloads.
    package init(limit: Int, hostLimit: Int, groupLimits: [String: Int] = [:]) {
        self.limit = limit
        self.hostLimit = hostLimit
        self.groupLimits = groupLimits
    }

    /// The number of downloads that may still start, regardless of hosts and groups.
    package var room: Int { max(0, limit - running) }

    /// The hosts at their limit.
    package var blockedHosts: Set<String> { Set(hosts.filter { $0.value >= hostLimit }.keys) }

    /// The groups at their limit.
    package var blockedGroups: Set<String> {
        Set(groupLimits.filter { groups[$0.key, default: 0] >= $0.value }.keys)
    }

    /// Returns whether a download with this share may start now.
    package func admits(_ share: Share) -> Bool {
        guard room > 0, hosts[share.host, default: 0] < hostLimit else { return false }
        guard let group = share.group, let limit = groupLimits[group] else { return true }
        return groups[group, default: 0] < limit
    }

    /// Records that a download starts. A running download may exceed a limit: lowering a limit ends no download.
    package mutating func start(_ share: Share) {
        running += 1
        hosts[share.host, default: 0] += 1
        if let group = share.group { groups[group, default: 0] += 1 }
    }

    /// Records that a started download ended.
    package mutating func end(_ share: Share) {
        running -= 1
        Self.decrement(&hosts, share.host)
        if let group = share.group { Self.decrement(&groups, group) }
    }

    private static func decrement(_ counts: inout [String: Int], _ key: String) {
        guard let count = counts[key] else { return }
        counts[key] = count > 1 ? count - 1 : nil
    }
}
