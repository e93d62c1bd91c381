public import TowlineCore

/// The calls that a `Download` passes to its manager.
extension Downloader {
    /// Returns the current state and progress of a download, as ``Download/snapshot``.
    public func snapshot(of id: DownloadID) async throws(TowlineError) -> DownloadSnapshot {
        try await center.list.snapshot(id)
    }

    /// Returns a sequence of the snapshots of a download, as ``Download/snapshots``.
    public func snapshotStream(of id: DownloadID) async -> AsyncStream<DownloadSnapshot> {
        await hub.stream(id) { try? await center.list.snapshot(id) }
    }

    /// Carries out an action for a download, as the methods of ``Download``.
    public func perform(_ action: DownloadAction, on id: DownloadID) async throws(TowlineError) {
        switch action {
        case .pause: try await center.pause(id)
        case .start: try await center.start(id)
        case .refetch: try await center.refetch(id)
        case .cancel: try await center.cancel(id)
        case .remove(let deletingFiles): try await center.remove(id, deletingFiles: deletingFiles)
        case .move(let other): try await center.move(id, before: other)
        case .setPriority(let priority): try await center.change(id, restarts: false) { $0.priority = priority }
        case .setRateLimit(let rate): try await center.change(id, restarts: false) { $0.rateLimit = rate }
        case .setConnections(let count): try await center.change(id, restarts: true) { $0.connections = count }
        case .setGroup(let group): try await center.change(id, restarts: false) { $0.group = group }
        case .setMetadata(let metadata): try await center.change(id, restarts: false) { $0.metadata = metadata }
        case .setDirectory(let directory): try await center.setDirectory(id, directory)
        case .setLink(let link, let publicAddressesOnly):
            try await center.change(id, restarts: true) { request in
                request.follow(link)
                if publicAddressesOnly { request.publicAddressesOnly = true }
            }
        }
    }

    /// Returns the request of a download, including its secrets.
    public func request(of id: DownloadID) async throws(TowlineError) -> DownloadRequest {
        try await center.list.request(id)
    }

    /// Returns notes of the timeline of a download, as ``Download/timeline(after:limit:)``.
    public func timeline(
        of id: DownloadID, after number: Int64, limit: Int
    ) async throws(TowlineError) -> [TimelineNote] {
        try await center.list.timeline(id, after: number, limit: limit)
    }

    /// Returns the downloaded byte ranges of a download, as ``Download/segments``.
    public func segments(of id: DownloadID) async throws(TowlineError) -> DownloadSegments {
        try await center.list.segments(id)
    }
}
