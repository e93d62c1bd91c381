public import TowlineCore

extension Downloader {
    /// The limits that are in force.
    public var limits: DownloadLimits {
        get async throws(TowlineError) { try await center.limits() }
    }

    /// All that run now, in the order they were added.
    public var running: [DownloadSnapshot] {
        get async throws(TowlineError) { try await center.running() }
    }

    /// The hosts of those that run, with what was learned of them, by name.
    public var hosts: [HostStatus] {
        get async throws(TowlineError) { try await center.hosts() }
    }

    /// The handle of the one download whose name begins or ends so, in at least four characters of either case; `nil` if
    /// there is none.
    ///
    /// - Throws: `unusableOption` if there are several.
    public func download(named short: String) async throws(TowlineError) -> Download? {
        if let id = DownloadID(short) { return try await download(id) }
        return try await center.find(short).map { Download(id: $0, center: center, hub: hub) }
    }
}
