import Foundation
import Towline
import TowlineCore
import TowlineWire

// The requests of the app, in the form that towd reads.

extension Wire.NewDownload {
    /// Creates the form of a request. Throws `unusableOption` for an option that the API of `towd` does not have, and
    /// `unusableDestination` if the destination is not a file URL.
    init(_ request: DownloadRequest) throws(TowlineError) {
        self.init(url: request.url.absoluteString)
        (directory, name) = try request.place
        mirrors = request.mirrors.isEmpty ? nil : request.mirrors.map(\.absoluteString)
        headers = request.headers.isEmpty ? nil : request.headers.map { Wire.Header(name: $0.name, value: $0.value) }
        (user, cookies, proxy, options) = (request.user, request.cookies, request.proxy, request.options)
        // A default value is not a given field, which would change a download that the list already contains.
        priority = request.priority == 0 ? nil : request.priority
        group = request.group
        metadata = request.metadata.isEmpty ? nil : request.metadata
        startsPaused = request.startsPaused ? true : nil
        if request.publicAddressesOnly { throw TowlineError.missing("publicAddressesOnly") }
        if request.certificateAuthorities != nil { throw TowlineError.missing("certificateAuthorities") }
        switch request.followUps.first {
        case nil: break
        case .unpack(let folder, deletesArchive: false) where request.followUps.count == 1 && folder.isFileURL:
            unpack = .into(folder.standardizedFileURL.path)
        default: throw TowlineError.missing("followUps other than one unpack that keeps the archive")
        }
    }
}

extension Wire.Change {
    /// Creates the change that an action makes; without changes for a command such as a pause.
    init(_ action: DownloadAction) throws(TowlineError) {
        self.init()
        switch action {
        case .pause, .start, .refetch, .cancel, .remove: break
        case .setPriority(let priority): self.priority = priority
        case .move(let other): before = other.map { .set($0.description) } ?? .clear
        case .setRateLimit(let rate): rateLimit = rate.map { .set($0) } ?? .clear
        case .setConnections(let count): connections = count.map { .set($0) } ?? .clear
        case .setGroup(let group): self.group = group.map { .set($0) } ?? .clear
        case .setMetadata(let metadata): self.metadata = metadata
        case .setDirectory(let directory): self.directory = directory.standardizedFileURL.path
        case .setLink(let link, let publicAddressesOnly):
            if publicAddressesOnly { throw TowlineError.missing("publicAddressesOnly") }
            url = link.url.absoluteString
            headers = link.headers?.map { Wire.Header(name: $0.name, value: $0.value) }
        }
    }
}

extension DownloadQuery {
    /// The parameters of a request for a page of the list.
    var items: [(String, String)] {
        var items = [("order", order.rawValue), ("limit", "\(min(max(1, limit), 1000))")]
        if descending { items.append(("descending", "true")) }
        if !filters.isEmpty { items.append(("state", filters.map(\.rawValue).sorted().joined(separator: ","))) }
        if let group { items.append(("group", group)) }
        if let text, !text.isEmpty { items.append(("text", text)) }
        if let cursor { items.append(("cursor", cursor.text)) }
        return items
    }
}

extension TowlineError {
    /// The error of a request that needs what the API of `towd` does not have.
    fileprivate static func missing(_ option: String) -> TowlineError {
        TowlineError(
            .unusableOption,
            "towd does not support this option of a request: \(option). Remove it, or use a Downloader in the app")
    }
}
