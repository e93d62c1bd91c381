extension Wire {
    /// A request to add a download. The API has no fields to run programs or call webhooks.
    package struct NewDownload: Hashable, Sendable, Codable {
        /// URL with the scheme `http` or `https`.
        package var url: String
        /// Mirror URLs of the same file.
        package var mirrors: [String]?
        /// Directory: relative to the downloads directory, or an absolute path inside it.
        package var directory: String?
        /// File name.
        package var name: String?
        /// Request header fields, sent to the URL's origin only.
        package var headers: [Header]?
        /// User and password: `name:password`.
        package var user: String?
        /// Cookies in the Netscape format, one per line.
        package var cookies: String?
        /// URL of the proxy; empty: no proxy.
        package var proxy: String?
        /// Maximum number of connections.
        package var connections: Int?
        /// Rate limit in bytes per second.
        package var rateLimit: Int64?
        /// Expected checksum: `algorithm:hex`.
        package var checksum: String?
        /// Priority; downloads with a higher priority start first.
        package var priority: Int?
        /// Group, for limits by group.
        package var group: String?
        /// Metadata of the client, returned unchanged.
        package var metadata: [String: String]?
        /// Action if the file exists: `fail`, `overwrite`, `rename` or `skip`.
        package var existing: String?
        /// True to add the download as paused.
        package var startsPaused: Bool?
        /// Unpack the archive after the download.
        package var unpack: Unpack?
        /// Stall timeout in seconds.
        package var stallTimeout: Double?
        /// Maximum number of consecutive attempts that receive no data.
        package var maximumTries: Int?
        /// Wait before the first retry in seconds.
        package var retryWait: Double?
        /// Longest pause that a server may request (`Retry-After`), in seconds.
        package var maximumWait: Double?
        /// HTTP statuses after which a request is retried, in addition to those that are always retried.
        package var retryStatuses: [Int]?
        /// Maximum number of consecutive redirects.
        package var maximumRedirects: Int?
        /// True to follow redirects from https to http, and to allow http mirrors of an https URL.
        package var allowDowngrade: Bool?
        /// True to use HTTP/1.1 only.
        package var http1: Bool?
        /// True to download from the first byte to the last over one connection.
        package var sequential: Bool?
        /// Maximum size of the file in bytes.
        package var maximumSize: Int64?
        /// True to resume after comparing only the length and the last bytes before the resume point.
        package var unsafeResume: Bool?
        /// True to ignore the checksums that the server sends.
        package var ignoreServerChecksums: Bool?
        /// True to accept a web page whatever kind of file the name says.
        package var acceptHTML: Bool?

        fileprivate enum CodingKeys: String, CodingKey, CaseIterable {
            case url, mirrors, directory, name, headers, user, cookies, proxy, connections, rateLimit, checksum
            case priority, group, metadata, existing, startsPaused, unpack, stallTimeout, maximumTries, retryWait
            case maximumWait, retryStatuses, maximumRedirects, allowDowngrade, http1, sequential, maximumSize
            case unsafeResume, ignoreServerChecksums, acceptHTML
        }

        /// Creates a request for a URL, with the defaults of the service.
        package init(url: String) { self.url = url }
    }

    /// A header field.
    package struct Header: Hashable, Sendable, Codable {
        /// Field name.
        package var name: String
        /// Field value.
        package var value: String

        private enum CodingKeys: String, CodingKey, CaseIterable { case name, value }

        /// Creates a value.
        package init(name: String, value: String) {
            self.name = name
            self.value = value
        }

        /// Decodes a value. An unknown field is an error.
        package init(from decoder: any Decoder) throws {
            let members = try decoder.strictContainer(CodingKeys.self)
            name = try members.decode(String.self, forKey: .name)
            value = try members.decode(String.self, forKey: .value)
        }
    }

    /// The option to unpack an archive: `true`, `false`, or `{"into": "directory"}`.
    package enum Unpack: Hashable, Sendable, Codable {
        /// Unpack into a directory with the archive's name (`true`), or do not unpack (`false`).
        case wanted(Bool)
        /// Unpack into the given directory, which must not exist.
        case into(String)

        private enum CodingKeys: String, CodingKey, CaseIterable { case into }

        /// Decodes either form.
        package init(from decoder: any Decoder) throws {
            if let wanted = try? decoder.singleValueContainer().decode(Bool.self) {
                self = .wanted(wanted)
            } else {
                self = .into(try decoder.strictContainer(CodingKeys.self).decode(String.self, forKey: .into))
            }
        }

        /// Encodes either form.
        package func encode(to encoder: any Encoder) throws {
            switch self {
            case .wanted(let wanted):
                var value = encoder.singleValueContainer()
                try value.encode(wanted)
            case .into(let directory):
                var members = encoder.container(keyedBy: CodingKeys.self)
                try members.encode(directory, forKey: .into)
            }
        }
    }

    /// One download, or many as `{"downloads": […]}`.
    package struct NewDownloads: Hashable, Sendable, Codable {
        /// Maximum number of downloads in one request.
        package static let maximum = 1000
        /// Recommended maximum size of a request as JSON, in bytes: half of the limit for request bodies.
        package static let maximumSize = 512 << 10

        /// Downloads to add, in order.
        package var downloads: [NewDownload]

        private enum CodingKeys: String, CodingKey, CaseIterable { case downloads }

        /// Creates a value.
        package init(_ downloads: [NewDownload]) { self.downloads = downloads }

        /// Decodes either form. An unknown field is an error.
        package init(from decoder: any Decoder) throws {
            guard try decoder.container(keyedBy: CodingKeys.self).contains(.downloads) else {
                downloads = [try Entry(from: decoder).download]
                return
            }
            downloads = try decoder.strictContainer(CodingKeys.self).decode([Entry].self, forKey: .downloads)
                .map(\.download)
        }

        private struct Entry: Decodable {
            let download: NewDownload

            init(from decoder: any Decoder) throws {
                _ = try decoder.strictContainer(NewDownload.CodingKeys.self)
                download = try NewDownload(from: decoder)
            }
        }
    }

    /// Changes to a download. Absent fields stay unchanged.
    package struct Change: Hashable, Sendable, Codable {
        /// Priority.
        package var priority: Int?
        /// Rate limit in bytes per second; `null`: no limit.
        package var rateLimit: Update<Int64> = .keep
        /// Maximum number of connections; `null`: automatic.
        package var connections: Update<Int> = .keep
        /// Group; `null`: no group.
        package var group: Update<String> = .keep
        /// Metadata, which replaces all existing metadata.
        package var metadata: [String: String]?
        /// ID of the download to move before; `null`: move to the end.
        package var before: Update<String> = .keep
        /// New URL of the same file.
        package var url: String?
        /// Header fields, which replace all existing header fields.
        package var headers: [Header]?

        private enum CodingKeys: String, CodingKey, CaseIterable {
            case priority, rateLimit, connections, group, metadata, before, url, headers
        }

        /// Creates an empty change.
        package init() {}

        /// Decodes a value. An unknown field is an error.
        package init(from decoder: any Decoder) throws {
            let members = try decoder.strictContainer(CodingKeys.self)
            priority = try members.decodeIfPresent(Int.self, forKey: .priority)
            rateLimit = try members.update(.rateLimit)
            connections = try members.update(.connections)
            group = try members.update(.group)
            metadata = try members.decodeIfPresent([String: String].self, forKey: .metadata)
            before = try members.update(.before)
            url = try members.decodeIfPresent(String.self, forKey: .url)
            headers = try members.decodeIfPresent([Header].self, forKey: .headers)
        }

        /// Encodes the changed fields.
        package func encode(to encoder: any Encoder) throws {
            var members = encoder.container(keyedBy: CodingKeys.self)
            try members.encodeIfPresent(priority, forKey: .priority)
            try members.encode(rateLimit, .rateLimit)
            try members.encode(connections, .connections)
            try members.encode(group, .group)
            try members.encodeIfPresent(metadata, forKey: .metadata)
            try members.encode(before, .before)
            try members.encodeIfPresent(url, forKey: .url)
            try members.encodeIfPresent(headers, forKey: .headers)
        }
    }
}
