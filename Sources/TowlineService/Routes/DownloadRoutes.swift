internal import Foundation
import HTTPTypes
import Hummingbird
internal import Towline
import TowlineWire

/// Routes for downloads: list, add, change, remove, actions, timeline and segments.
struct DownloadRoutes: Sendable {
    let downloader: Downloader
    let roots: DownloadRoots
    let settings: LiveSettings

    private static let list = Wire.base + "/downloads"
    private static let one = list + "/{id}"

    func add(to table: inout RouteTable) {
        table.add(.get, Self.list, parameters: QueryReader.listParameters) { request, _ in
            try await page(QueryReader(request))
        }
        table.add(.post, Self.list) { request, context in try await create(request, context) }
        table.add(.get, Self.one) { _, context in try await answer(try await download(context)) }
        table.add(.patch, Self.one) { request, context in
            let change = try await Answer.read(Wire.Change.self, from: request)
            let download = try await download(context)
            try await apply(change, to: download, context)
            return try await answer(download)
        }
        table.add(.delete, Self.one, parameters: ["files"]) { request, context in
            let deletingFiles = try QueryReader(request).flag("files")
            try await download(context).remove(deletingFiles: deletingFiles)
            return Answer.nothing()
        }
        table.add(.get, Self.one + "/timeline", parameters: ["after", "limit"]) { request, context in
            let query = QueryReader(request)
            let after = try query.integer("after", in: 0...Int64.max) ?? 0
            let limit = try query.integer("limit", in: 1...10_000) ?? 1000
            let notes = try await download(context).timeline(after: after, limit: Int(limit))
            return try Answer.json(Wire.Timeline(notes: notes.map { Wire.Note($0) }))
        }
        table.add(.get, Self.one + "/segments") { _, context in
            try Answer.json(Wire.Segments(try await download(context).segments))
        }
        addActions(to: &table)
    }

    /// Returns a page of the list. Few downloads run at a time, so a page that must be filled again is rare.
    private func page(_ reader: QueryReader) async throws -> Response {
        let states = try reader.states()
        var query = try reader.list()
        var downloads: [Wire.Download] = []
        let limit = query.limit
        repeat {
            query.limit = limit - downloads.count
            let page = try await downloader.page(query)
            let found = page.downloads.map { Wire.Download($0) }
            let isChecked = states.contains { $0.needsCheck }
            downloads += isChecked ? found.filter { row in states.contains { $0.contains(row) } } : found
            query.cursor = page.next
        } while query.cursor != nil && downloads.count < limit
        return try Answer.json(
            Wire.Page(
                downloads: downloads, next: query.cursor?.text, totals: try await downloader.wireTotals))
    }

    private func addActions(to table: inout RouteTable) {
        let actions: [(String, @Sendable (Download) async throws -> Void)] = [
            ("pause", { try await $0.pause() }), ("resume", { try await $0.resume() }),
            ("cancel", { try await $0.cancel() }), ("retry", { try await $0.retry() }),
            ("start", { try await $0.start() }),
            ("refetch", { try await $0.refetch() }),
        ]
        for (name, perform) in actions {
            table.add(.post, Self.one + "/actions/" + name, takesBody: false) { _, context in
                let download = try await download(context)
                try await perform(download)
                return try await answer(download)
            }
        }
        table.add(.post, Wire.base + "/actions/find") { request, _ in
            let wire = try await Answer.read(Wire.NewDownload.self, from: request)
            let found = try await downloader.find(
                try DownloadRequest(wire, roots: roots, createsDirectories: false))
            let snapshots = try await downloader.snapshots(of: found.map { [$0] } ?? [])
            return try Answer.json(Wire.Added(downloads: snapshots.map { Wire.Download($0) }))
        }
        table.add(.post, Wire.base + "/actions/pause-all", parameters: ["group"], takesBody: false) { request, _ in
            try await downloader.pauseAll(group: QueryReader(request).text("group"))
            return Answer.nothing()
        }
        table.add(.post, Wire.base + "/actions/resume-all", parameters: ["group"], takesBody: false) { request, _ in
            try await downloader.startAll(group: QueryReader(request).text("group"))
            return Answer.nothing()
        }
    }

    /// The download whose ID or file name is in the path.
    private func download(_ context: ServiceContext) async throws -> Download {
        try await downloader.require(context.parameters.require("id"))
    }

    private func answer(_ download: Download) async throws -> Response {
        try Answer.json(Wire.Download(try await download.snapshot, of: try await download.request))
    }

    private func create(_ request: Request, _ context: ServiceContext) async throws -> Response {
        let asked = try await Answer.read(Wire.NewDownloads.self, from: request).downloads
        guard (1...Wire.NewDownloads.maximum).contains(asked.count) else {
            throw HTTPError(
                .badRequest,
                message: "downloads: expected 1 to \(Wire.NewDownloads.maximum) downloads, got \(asked.count)")
        }
        var requests: [DownloadRequest] = []
        for wire in asked {
            var request = try DownloadRequest(wire, roots: roots)
            request.publicAddressesOnly = !settings.privateAddresses.allow(isLocal: context.isLocal)
            requests.append(request)
        }
        let added = try await downloader.snapshots(of: try await downloader.add(contentsOf: requests))
        return try Answer.json(Wire.Added(downloads: added.map { Wire.Download($0) }), status: .created)
    }

    private func apply(
        _ change: Wire.Change, to download: Download, _ context: ServiceContext
    ) async throws {
        if let directory = change.directory {
            let path = try await self.directory(directory, for: download)
            try await download.setDirectory(URL(fileURLWithPath: path, isDirectory: true))
        }
        if let priority = change.priority { try await download.setPriority(try DownloadRequest.priority(priority)) }
        switch change.rateLimit {
        case .keep: break
        case .clear: try await download.setRateLimit(nil)
        case .set(let limit): try await download.setRateLimit(limit)
        }
        switch change.connections {
        case .keep: break
        case .clear: try await download.setConnections(nil)
        case .set(let count): try await download.setConnections(count)
        }
        switch change.group {
        case .keep: break
        case .clear: try await download.setGroup(nil)
        case .set(let group): try await download.setGroup(try DownloadRequest.group(group))
        }
        if let metadata = change.metadata { try await download.setMetadata(try DownloadRequest.metadata(metadata)) }
        try await applyLink(change, to: download, context)
        try await applyPlace(change, to: download)
    }

    /// Returns the new directory of a download. Creates it only if the download has not begun: otherwise a mistyped
    /// path would let the download start over there.
    private func directory(_ text: String, for download: Download) async throws -> String {
        let path = try roots.directory(text, creating: false)
        guard !FileManager.default.fileExists(atPath: path) else { return path }
        let snapshot = try await download.snapshot
        let hasBegun = snapshot.completeLength != nil || snapshot.heldBytes > 0 || snapshot.state == .finished
        guard !hasBegun else {
            throw TowlineError(
                .unusableDestination,
                """
                the directory \(TerminalSafeText.make(path)) does not exist. Move the files of the download there \
                first, or check the path
                """)
        }
        return try roots.directory(text)
    }

    private func applyLink(
        _ change: Wire.Change, to download: Download, _ context: ServiceContext
    ) async throws {
        let headers = change.headers?.map { DownloadRequest.Header($0.name, $0.value) }
        guard let text = change.url else {
            guard headers == nil else {
                throw HTTPError(
                    .badRequest, message: "headers: this field can only be changed together with url. Send both fields")
            }
            return
        }
        try await download.setLink(
            RenewedLink(url: try DownloadRequest.url(text), headers: headers),
            publicAddressesOnly: !settings.privateAddresses.allow(isLocal: context.isLocal))
    }

    private func applyPlace(_ change: Wire.Change, to download: Download) async throws {
        switch change.before {
        case .keep: break
        case .clear: try await download.move(before: nil)
        case .set(let name):
            guard let other = try await downloader.download(named: name) else {
                throw HTTPError(
                    .badRequest,
                    message: "before: no download with this ID is in the list, so the download was not moved")
            }
            try await download.move(before: other.id)
        }
    }
}

extension Downloader {
    /// Returns the download with an ID, in full or shortened, or with a file name.
    ///
    /// - Parameter component: the ID or the name as a component of a path, percent-encoded.
    /// - Throws: `unknownDownload`; `unusableOption` if the shortened ID or the name is ambiguous.
    func require(_ component: String) async throws -> Download {
        let name = component.removingPercentEncoding ?? component
        guard let download = try await download(named: name) else {
            throw TowlineError(
                .unknownDownload,
                """
                no download with the ID or name \(TerminalSafeText.make(name, width: 60)) is in the list of downloads. It \
                may have been removed; 'tow list' shows the IDs
                """)
        }
        return download
    }

    /// The totals of the list and of the active downloads.
    var wireTotals: Wire.Totals {
        get async throws {
            Wire.Totals(try await totals, running: try await running, rateLimit: try await limits.rateLimit)
        }
    }
}
