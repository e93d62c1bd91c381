public import TowlineCore

extension Downloader {
    /// The limits on running downloads and on the total rate that are currently in effect.
    public var limits: DownloadLimits {
        get async throws(TowlineError) { try await center.limits() }
    }

    /// Snapshots of all running downloads, in the order in which the downloads were added.
    public var running: [DownloadSnapshot] {
        get async throws(TowlineError) { try center.list.runningDownloads() }
    }

    /// The status of each host that running downloads use, such as its connection limit, sorted by host name.
    public var hosts: [HostStatus] {
        get async throws(TowlineError) { try center.list.hosts() }
    }

    /// Returns the handle of the download whose identifier begins or ends with `short`, or whose file has this name.
    ///
    /// The result is `nil` if no download matches.
    ///
    /// An abbreviated identifier has at least four characters, and upper and lower case are equal. A complete
    /// identifier is also accepted. A file name must be complete. While the name of a file is not known, its name is
    /// the last component of the URL.
    ///
    /// - Throws: `unusableOption` if more than one download matches.
    public func download(named short: String) async throws(TowlineError) -> Download? {
        if let id = DownloadID(short) { return try await download(id) }
        return try await center.list.find(short).map { Download(id: $0, manager: self) }
    }
}
