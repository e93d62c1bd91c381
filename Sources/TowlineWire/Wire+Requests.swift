package import TowlineCore

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
        /// Options of the transfer. In JSON, they are fields of the same object.
        package var options = TransferOptions()
        /// Priority; downloads with a higher priority start first.
        package var priority: Int?
        /// Group, for limits by group.
        package var group: String?
        /// Metadata of the client, returned unchanged.
        package var metadata: [String: String]?
        /// True to add the download as paused.
        package var startsPaused: Bool?
        /// Unpack the archive after the download.
        package var unpack: Unpack?
        /// The fields that the client gave. `url`, `directory` and `name` are not included.
        package var given: Set<RequestField> = []

        /// The names of the fields in JSON, besides those of `options`.
        package enum CodingKeys: String, CodingKey, CaseIterable {
            case url, mirrors, directory, name, headers, user, cookies, proxy, priority, group, metadata, startsPaused
            case unpack
        }

        /// Creates a request for a URL, with the defaults of the service.
        package init(url: String) { self.url = url }

        /// Decodes a request. An unknown field is an error.
        package init(from decoder: any Decoder) throws {
            let members = try decoder.strictContainer(CodingKeys.self, besides: TransferOptions.CodingKeys.allCases)
            url = try members.decode(String.self, forKey: .url)
            mirrors = try members.decodeIfPresent([String].self, forKey: .mirrors)
            directory = try members.decodeIfPresent(String.self, forKey: .directory)
            name = try members.decodeIfPresent(String.self, forKey: .name)
            headers = try members.decodeIfPresent([Header].self, forKey: .headers)
            user = try members.decodeIfPresent(String.self, forKey: .user)
            cookies = try members.decodeIfPresent(String.self, forKey: .cookies)
            proxy = try members.decodeIfPresent(String.self, forKey: .proxy)
            priority = try members.decodeIfPresent(Int.self, forKey: .priority)
            group = try members.decodeIfPresent(String.self, forKey: .group)
            metadata = try members.decodeIfPresent([String: String].self, forKey: .metadata)
            startsPaused = try members.decodeIfPresent(Bool.self, forKey: .startsPaused)
            unpack = try members.decodeIfPresent(Unpack.self, forKey: .unpack)
            options = try TransferOptions(from: decoder)
            let values = try decoder.container(keyedBy: TransferOptions.CodingKeys.self)
            let names =
                try members.allKeys.filter { try !members.decodeNil(forKey: $0) }.map(\.rawValue)
                + values.allKeys.filter { try !values.decodeNil(forKey: $0) }.map(\.rawValue)
            given = Set(names.compactMap(RequestField.init(rawValue:)))
        }

        /// Encodes a request. Writes the default values of the options in `given`, too.
        package func encode(to encoder: any Encoder) throws {
            var members = encoder.container(keyedBy: CodingKeys.self)
            try members.encode(url, forKey: .url)
            try members.encodeIfPresent(mirrors, forKey: .mirrors)
            try members.encodeIfPresent(directory, forKey: .directory)
            try members.encodeIfPresent(name, forKey: .name)
            try members.encodeIfPresent(headers, forKey: .headers)
            try members.encodeIfPresent(user, forKey: .user)
            try members.encodeIfPresent(cookies, forKey: .cookies)
            try members.encodeIfPresent(proxy, forKey: .proxy)
            try members.encodeIfPresent(priority, forKey: .priority)
            try members.encodeIfPresent(group, forKey: .group)
            try members.encodeIfPresent(metadata, forKey: .metadata)
            try members.encodeIfPresent(startsPaused, forKey: .startsPaused)
            try members.encodeIfPresent(unpack, forKey: .unpack)
            try options.encode(
                to: encoder, including: Set(given.compactMap { TransferOptions.CodingKeys(rawValue: $0.rawValue) }))
        }
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
                downloads = [try NewDownload(from: decoder)]
                return
            }
            downloads = try decoder.strictContainer(CodingKeys.self).decode([NewDownload].self, forKey: .downloads)
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
        /// New directory of the moved files: relative to the downloads directory, or absolute.
        package var directory: String?

        private enum CodingKeys: String, CodingKey, CaseIterable {
            case priority, rateLimit, connections, group, metadata, before, url, headers, directory
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
            directory = try members.decodeIfPresent(String.self, forKey: .directory)
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
            try members.encodeIfPresent(directory, forKey: .directory)
        }
    }
}
