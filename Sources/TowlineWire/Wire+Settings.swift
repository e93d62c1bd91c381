extension Wire {
    /// The limits that are in force.
    package struct Settings: Hashable, Sendable, Codable {
        /// Downloads that run at once.
        package var maximumRunning: Int
        /// And for each host.
        package var maximumRunningPerHost: Int
        /// Bytes per second of all together; 0: no limit, which is left out as everything is that is not there.
        package var rateLimit: Int64
        /// How many of a group run at once, where it has a limit of its own.
        package var groups: [String: Int]
        /// Where downloads go, and nowhere else.
        package var downloadsDirectory: String
        /// Where the page is, as addresses for a browser; it may be nowhere.
        package var pages: [String]
        /// The version of `towd`.
        package var version: String

        /// Makes one.
        package init(
            maximumRunning: Int, maximumRunningPerHost: Int, rateLimit: Int64, groups: [String: Int],
            downloadsDirectory: String, pages: [String], version: String
        ) {
            self.maximumRunning = maximumRunning
            self.maximumRunningPerHost = maximumRunningPerHost
            self.rateLimit = rateLimit
            self.groups = groups
            self.downloadsDirectory = downloadsDirectory
            self.pages = pages
            self.version = version
        }

        private enum CodingKeys: String, CodingKey {
            case maximumRunning, maximumRunningPerHost, rateLimit, groups, downloadsDirectory, pages, version
        }

        /// Reads one.
        package init(from decoder: any Decoder) throws {
            let members = try decoder.container(keyedBy: CodingKeys.self)
            maximumRunning = try members.decode(Int.self, forKey: .maximumRunning)
            maximumRunningPerHost = try members.decode(Int.self, forKey: .maximumRunningPerHost)
            rateLimit = try members.decodeIfPresent(Int64.self, forKey: .rateLimit) ?? 0
            groups = try members.decode([String: Int].self, forKey: .groups)
            downloadsDirectory = try members.decode(String.self, forKey: .downloadsDirectory)
            pages = try members.decodeIfPresent([String].self, forKey: .pages) ?? []
            version = try members.decode(String.self, forKey: .version)
        }

        /// Writes what is set.
        package func encode(to encoder: any Encoder) throws {
            var members = encoder.container(keyedBy: CodingKeys.self)
            try members.encode(maximumRunning, forKey: .maximumRunning)
            try members.encode(maximumRunningPerHost, forKey: .maximumRunningPerHost)
            try members.encodeIfPresent(rateLimit == 0 ? nil : rateLimit, forKey: .rateLimit)
            try members.encode(groups, forKey: .groups)
            try members.encode(downloadsDirectory, forKey: .downloadsDirectory)
            try members.encode(pages, forKey: .pages)
            try members.encode(version, forKey: .version)
        }
    }

    /// Changes to the limits. What is not there stays.
    package struct SettingsChange: Hashable, Sendable, Codable {
        /// Downloads that run at once.
        package var maximumRunning: Int?
        /// And for each host.
        package var maximumRunningPerHost: Int?
        /// Bytes per second of all together; 0 or cleared: no limit.
        package var rateLimit: Update<Int64> = .keep
        /// Limits of groups; `null` takes one away.
        package var groups: [String: Int?]?

        private enum CodingKeys: String, CodingKey, CaseIterable {
            case maximumRunning, maximumRunningPerHost, rateLimit, groups
        }

        /// No change yet.
        package init() {}

        /// Reads one; a member that there is not is an error.
        package init(from decoder: any Decoder) throws {
            let members = try decoder.strictContainer(CodingKeys.self)
            maximumRunning = try members.decodeIfPresent(Int.self, forKey: .maximumRunning)
            maximumRunningPerHost = try members.decodeIfPresent(Int.self, forKey: .maximumRunningPerHost)
            rateLimit = try members.update(.rateLimit)
            groups = try members.decodeIfPresent([String: Int?].self, forKey: .groups)
        }

        /// Writes what changes.
        package func encode(to encoder: any Encoder) throws {
            var members = encoder.container(keyedBy: CodingKeys.self)
            try members.encodeIfPresent(maximumRunning, forKey: .maximumRunning)
            try members.encodeIfPresent(maximumRunningPerHost, forKey: .maximumRunningPerHost)
            try members.encode(rateLimit, .rateLimit)
            try members.encodeIfPresent(groups, forKey: .groups)
        }
    }

    /// The token, for a session of the page.
    package struct Session: Hashable, Sendable, Codable {
        /// As it is in the token file.
        package var token: String

        private enum CodingKeys: String, CodingKey, CaseIterable { case token }

        /// Reads one.
        package init(from decoder: any Decoder) throws {
            token = try decoder.strictContainer(CodingKeys.self).decode(String.self, forKey: .token)
        }
    }
}
