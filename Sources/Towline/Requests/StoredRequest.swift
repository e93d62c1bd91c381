import Foundation
import TowlineCore
import TowlineDisk
import TowlineEngine

/// Encodes download requests as JSON for the registry, the database of all downloads, and decodes them.
enum StoredRequest {
    static func encode(_ request: DownloadRequest) throws(TowlineError) -> [UInt8] {
        do {
            let encoder = JSONEncoder()
            encoder.outputFormatting = .sortedKeys
            return Array(try encoder.encode(request))
        } catch {
            throw TowlineError(
                .unusableOption,
                "cannot save the request: a number in the request is infinite or not a number. Use finite numbers")
        }
    }

    static func decode(_ bytes: [UInt8]) throws -> DownloadRequest {
        try JSONDecoder().decode(DownloadRequest.self, from: Data(bytes))
    }

    /// Returns the request of an entry in the registry as the caller made it.
    static func request(of record: RegisteredDownload) -> DownloadRequest {
        ((try? decode(record.options)) ?? DownloadRequest(record)).asAdded
    }
}

/// The JSON form of a request in the registry, with the options of the transfer in the same object. Members that an
/// older version did not store have their default values.
extension DownloadRequest: Codable {
    enum CodingKeys: String, CodingKey, CaseIterable {
        case url, destination, headers, cookies, user, priority, group, metadata, startsPaused, followUps, proxy
        case certificateAuthorities, netrcFile
        case publicAddressesOnly = "isPublicOnly"
        case mirrors = "otherURLs"
        case replacesOwnFile, fileSystem
    }

    /// Decodes a request from the JSON text that the registry, the database of all downloads, stores.
    public init(from decoder: any Decoder) throws {
        let values = try decoder.container(keyedBy: CodingKeys.self)
        url = try values.decode(URL.self, forKey: .url)
        destination = try values.decode(Destination.self, forKey: .destination)
        headers = try values.decodeIfPresent([Header].self, forKey: .headers) ?? []
        cookies = try values.decodeIfPresent(String.self, forKey: .cookies)
        user = try values.decodeIfPresent(String.self, forKey: .user)
        priority = try values.decodeIfPresent(Int.self, forKey: .priority) ?? 0
        group = try values.decodeIfPresent(String.self, forKey: .group)
        metadata = try values.decodeIfPresent([String: String].self, forKey: .metadata) ?? [:]
        startsPaused = try values.decodeIfPresent(Bool.self, forKey: .startsPaused) ?? false
        followUps = try values.decodeIfPresent([FollowUp].self, forKey: .followUps) ?? []
        proxy = try values.decodeIfPresent(String.self, forKey: .proxy)
        certificateAuthorities = try values.decodeIfPresent(URL.self, forKey: .certificateAuthorities)
        netrcFile = try values.decodeIfPresent(URL.self, forKey: .netrcFile)
        publicAddressesOnly = try values.decodeIfPresent(Bool.self, forKey: .publicAddressesOnly) ?? false
        mirrors = try values.decodeIfPresent([URL].self, forKey: .mirrors) ?? []
        replacesOwnFile = try values.decodeIfPresent(Bool.self, forKey: .replacesOwnFile) ?? false
        fileSystem = try values.decodeIfPresent(FileSystemIdentity.self, forKey: .fileSystem)
        options = try TransferOptions(from: decoder)
    }

    /// Encodes the request as JSON for the registry, the database of all downloads, including its secrets.
    public func encode(to encoder: any Encoder) throws {
        var values = encoder.container(keyedBy: CodingKeys.self)
        try values.encode(url, forKey: .url)
        try values.encode(destination, forKey: .destination)
        try values.encode(headers, forKey: .headers)
        try values.encodeIfPresent(cookies, forKey: .cookies)
        try values.encodeIfPresent(user, forKey: .user)
        try values.encode(priority, forKey: .priority)
        try values.encodeIfPresent(group, forKey: .group)
        try values.encode(metadata, forKey: .metadata)
        try values.encode(startsPaused, forKey: .startsPaused)
        try values.encode(followUps, forKey: .followUps)
        try values.encodeIfPresent(proxy, forKey: .proxy)
        try values.encodeIfPresent(certificateAuthorities, forKey: .certificateAuthorities)
        try values.encodeIfPresent(netrcFile, forKey: .netrcFile)
        try values.encode(publicAddressesOnly, forKey: .publicAddressesOnly)
        try values.encode(mirrors, forKey: .mirrors)
        if replacesOwnFile { try values.encode(true, forKey: .replacesOwnFile) }
        try values.encodeIfPresent(fileSystem, forKey: .fileSystem)
        try options.encode(to: encoder)
    }
}

extension DownloadRequest {
    /// Creates a request from the URL, destination, metadata, group and priority of an entry in the registry. Used if
    /// the stored request cannot be decoded.
    init(_ record: RegisteredDownload) {
        let directory = URL(fileURLWithPath: record.directory, isDirectory: true)
        let destination: Destination =
            record.name.map { .file(directory.appendingPathComponent($0, isDirectory: false)) } ?? .directory(directory)
        self.init(from: URL(string: record.source) ?? URL(fileURLWithPath: "/"), to: destination)
        metadata = record.metadata
        group = record.group
        priority = record.priority
    }
}
