/// Limits and counts of the listed downloads that run in parallel: in total, for each host and for each group that the
/// user named.
///
/// The caller reports each download that starts or ends. Waiting downloads are not stored here, so a million of them
/// cost nothing; the caller that stores them starts the first one whose host and group are below their limits.
package struct Admission: Hashable, Sendable {
    /// The host and group whose limits a download counts against.
    package struct Share: Hashable, Sendable {
        /// The `scheme://host:port` of the download's URL.
        package var host: String
        /// The download's group; `nil` if it has no group.
        package var group: String?

        /// Creates a share from `scheme://host:port` and the name of a group (`nil`: no group).
        package init(host: String, group: String? = nil) {
            self.host = host
            self.group = group
        }
    }

    /// The maximum number of downloads that run in parallel, in total.
    package var limit: Int
    /// The maximum number of downloads that run in parallel from one host (`Share.host`).
    package var hostLimit: Int
    /// The maximum number of downloads of a group that run in parallel, by the group's name. A group without an entry
    /// has no limit; with 0, no download of the group starts.
    package var groupLimits: [String: Int]
    /// The number of downloads that have started and not yet ended.
    package private(set) var running = 0
    /// The number of running downloads by host (`Share.host`), for `hostLimit`.
    private var hosts: [String: Int] = [:]
    /// The number of running downloads by the name of their group, for `groupLimits`.
    private var groups: [String: Int] = [:]

    /// Creates the limits on downloads that run in parallel. No download is counted as running yet.
    package init(limit: Int, hostLimit: Int, groupLimits: [String: Int] = [:]) {
        self.limit = limit
        self.hostLimit = hostLimit
        self.groupLimits = groupLimits
    }

    /// The number of downloads that may still start under `limit`, without regard to hosts and groups; 0 if none may
    /// start.
    package var room: Int { max(0, limit - running) }

    /// The hosts with `hostLimit` running downloads or more: no download from them may start now.
    package var blockedHosts: Set<String> { Set(hosts.filter { $0.value >= hostLimit }.keys) }

    /// The groups with as many running downloads as their limit or more: none of their downloads may start now.
    package var blockedGroups: Set<String> {
        Set(groupLimits.filter { groups[$0.key, default: 0] >= $0.value }.keys)
    }

    /// Returns whether a download with this host and group may start now: the total, the host and the group are below
    /// their limits.
    package func admits(_ share: Share) -> Bool {
        guard room > 0, hosts[share.host, default: 0] < hostLimit else { return false }
        guard let group = share.group, let limit = groupLimits[group] else { return true }
        return groups[group, default: 0] < limit
    }

    /// Returns the limit that keeps a download with this host and group queued, as text such as `limit: 3 per host`;
    /// `nil` if the download may start now.
    package func reason(for share: Share) -> String? {
        if let group = share.group, let limit = groupLimits[group], groups[group, default: 0] >= limit {
            return "limit: \(limit) in the group \(group)"
        }
        if hosts[share.host, default: 0] >= hostLimit { return "limit: \(hostLimit) per host" }
        return room > 0 ? nil : "limit: \(limit) at the same time"
    }

    /// Records that a download with this host and group starts, without a check of the limits. A running download may
    /// exceed a limit: lowering a limit ends no download.
    package mutating func start(_ share: Share) {
        running += 1
        hosts[share.host, default: 0] += 1
        if let group = share.group { groups[group, default: 0] += 1 }
    }

    /// Records that a running download ended and no longer counts against the limits. `share` is the host and group
    /// that `start` received.
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
