/// Whether one more download may run now: a limit for all, for each host and for each group.
///
/// A value: the caller tells it what starts and what ends. It never holds what waits, so that a million waiting
/// downloads cost it nothing; whoever keeps those asks for the first one that is not blocked.
package struct Admission: Hashable, Sendable {
    /// What a download counts against.
    package struct Share: Hashable, Sendable {
        /// `scheme://host:port` of its URL.
        package var host: String
        /// Its group, if it is in one.
        package var group: String?

        /// Makes one.
        package init(host: String, group: String? = nil) {
            self.host = host
            self.group = group
        }
    }

    /// Downloads that run at once, at most, over all.
    package var limit: Int
    /// And for each host.
    package var hostLimit: Int
    /// And for those groups that have a limit of their own; 0 holds a group back entirely.
    package var groupLimits: [String: Int]
    /// How many run.
    package private(set) var running = 0
    private var hosts: [String: Int] = [:]
    private var groups: [String: Int] = [:]

    /// Nothing runs yet.
    package init(limit: Int, hostLimit: Int, groupLimits: [String: Int] = [:]) {
        self.limit = limit
        self.hostLimit = hostLimit
        self.groupLimits = groupLimits
    }

    /// How many more may run, whatever their hosts and groups.
    package var room: Int { max(0, limit - running) }

    /// Hosts of which none may start now.
    package var blockedHosts: Set<String> { Set(hosts.filter { $0.value >= hostLimit }.keys) }

    /// Groups of which none may start now.
    package var blockedGroups: Set<String> {
        Set(groupLimits.filter { groups[$0.key, default: 0] >= $0.value }.keys)
    }

    /// Whether this one may start now.
    package func admits(_ share: Share) -> Bool {
        guard room > 0, hosts[share.host, default: 0] < hostLimit else { return false }
        guard let group = share.group, let limit = groupLimits[group] else { return true }
        return groups[group, default: 0] < limit
    }

    /// One starts. Limits may be exceeded for as long as it runs: one that the user lowered meanwhile ends nothing.
    package mutating func start(_ share: Share) {
        running += 1
        hosts[share.host, default: 0] += 1
        if let group = share.group { groups[group, default: 0] += 1 }
    }

    /// One that started has ended.
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
