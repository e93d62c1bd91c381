extension Wire {
    /// What a client asks to be downloaded. Nothing that runs a program or calls a webhook can be asked for.
    package struct NewDownload: Hashable, Sendable, Codable {
        /// `http` or `https`.
        package var url: String
        /// Other URLs of the same file.
        package var mirrors: [String]?
        /// A directory: relative to the downloads directory, or absolute inside it.
        package var directory: String?
        /// The final name.
        package var name: String?
        /// Header fields for the URL's origin.
        package var headers: [Header]?
        /// `name:password`.
        package var user: String?
        /// Most connections.
        package var connections: Int?
        /// Bytes per second.
        package var rateLimit: Int64?
        /// `algorithm:hex`.
        package var checksum: String?
        /// Higher goes first.
        package var priority: Int?
        /// The group it counts in.
        package var group: String?
        /// Comes back unchanged.
        package var metadata: [String: String]?
        /// `fail`, `overwrite`, `rename` or `skip` where the name is taken.
        package var existing: String?
        /// Added without being started.
        package var startsPaused: Bool?
        /// Unpack it when it is there.
        package var unpack: Unpack?
        /// Seconds without a byte.
        package var stallTimeout: Double?
        /// Attempts in a row that bring nothing.
        package var maximumTries: Int?
        /// Go on with length and overlap alone.
        package var unsafeResume: Bool?

        private enum CodingKeys: String, CodingKey, CaseIterable {
            case url, mirrors, directory, name, headers, user, connections, rateLimit, checksum, priority, group,
                metadata
            case existing, startsPaused, unpack, stallTimeout, maximumTries, unsafeResume
        }

        /// A URL, everything else as the service has it.
        package init(url: String) { self.url = url }

        /// Reads one; a member that there is not is an error.
        package init(from decoder: any Decoder) throws {
            let members = try decoder.strictContainer(CodingKeys.self)
            url = try members.decode(String.self, forKey: .url)
            mirrors = try members.decodeIfPresent([String].self, forKey: .mirrors)
            directory = try members.decodeIfPresent(String.self, forKey: .directory)
            name = try members.decodeIfPresent(String.self, forKey: .name)
            headers = try members.decodeIfPresent([Header].self, forKey: .headers)
            user = try members.decodeIfPresent(String.self, forKey: .user)
            connections = try members.decodeIfPresent(Int.self, forKey: .connections)
            rateLimit = try members.decodeIfPresent(Int64.self, forKey: .rateLimit)
            checksum = try members.decodeIfPresent(String.self, forKey: .checksum)
            priority = try members.decodeIfPresent(Int.self, forKey: .priority)
            group = try members.decodeIfPresent(String.self, forKey: .group)
            metadata = try members.decodeIfPresent([String: String].self, forKey: .metadata)
            existing = try members.decodeIfPresent(String.self, forKey: .existing)
            startsPaused = try members.decodeIfPresent(Bool.self, forKey: .startsPaused)
            unpack = try members.decodeIfPresent(Unpack.self, forKey: .unpack)
            stallTimeout = try members.decodeIfPresent(Double.self, forKey: .stallTimeout)
            maximumTries = try members.decodeIfPresent(Int.self, forKey: .maximumTries)
            unsafeResume = try members.decodeIfPresent(Bool.self, forKey: .unsafeResume)
        }
    }

    /// A header field.
    package struct Header: Hashable, Sendable, Codable {
        /// The name.
        package var name: String
        /// The value.
        package var value: String

        private enum CodingKeys: String, CodingKey, CaseIterable { case name, value }

        /// Makes one.
        package init(name: String, value: String) {
            self.name = name
            self.value = value
        }

        /// Reads one.
        package init(from decoder: any Decoder) throws {
            let members = try decoder.strictContainer(CodingKeys.self)
            name = try members.decode(String.self, forKey: .name)
            value = try members.decode(String.self, forKey: .value)
        }
    }

    /// `true`, `false`, or `{"into": "directory"}`.
    package enum Unpack: Hashable, Sendable, Codable {
        /// Into a directory of the archive's name, or not at all.
        case wanted(Bool)
        /// Into that directory, which must not be there yet.
        case into(String)

        private enum CodingKeys: String, CodingKey, CaseIterable { case into }

        /// Reads either.
        package init(from decoder: any Decoder) throws {
            if let wanted = try? decoder.singleValueContainer().decode(Bool.self) {
                self = .wanted(wanted)
            } else {
                self = .into(try decoder.strictContainer(CodingKeys.self).decode(String.self, forKey: .into))
            }
        }

        /// Writes either.
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
        /// At most so many at once.
        package static let maximum = 1000
        /// How many bytes they may have as JSON: half of what a request's body may.
        package static let maximumSize = 512 << 10

        /// In order.
        package var downloads: [NewDownload]

        private enum CodingKeys: String, CodingKey, CaseIterable { case downloads }

        /// Makes one.
        package init(_ downloads: [NewDownload]) { self.downloads = downloads }

        /// Reads either form.
        package init(from decoder: any Decoder) throws {
            guard try decoder.container(keyedBy: CodingKeys.self).contains(.downloads) else {
                downloads = [try NewDownload(from: decoder)]
                return
            }
            downloads = try decoder.strictContainer(CodingKeys.self).decode([NewDownload].self, forKey: .downloads)
        }
    }

    /// Changes to a download. What is not there stays.
    package struct Change: Hashable, Sendable, Codable {
        /// The priority.
        package var priority: Int?
        /// Bytes per second; cleared: no limit.
        package var rateLimit: Update<Int64> = .keep
        /// Most connections; cleared: as many as pay off.
        package var connections: Update<Int> = .keep
        /// The group.
        package var group: Update<String> = .keep
        /// The caller's own, whole.
        package var metadata: [String: String]?
        /// Goes before that download; cleared: to the end.
        package var before: Update<String> = .keep
        /// A new link to the same file.
        package var url: String?
        /// Header fields that take the place of those there are.
        package var headers: [Header]?

        private enum CodingKeys: String, CodingKey, CaseIterable {
            case priority, rateLimit, connections, group, metadata, before, url, headers
        }

        /// No change yet.
        package init() {}

        /// Reads one; a member that there is not is an error.
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

        /// Writes what changes.
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
