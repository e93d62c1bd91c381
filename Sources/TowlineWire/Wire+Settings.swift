extension Wire {
    /// The current settings of the service.
    package struct Settings: Hashable, Sendable, Codable {
        /// Maximum number of active downloads.
        package var maximumRunning: Int
        /// Maximum number of active downloads per host.
        package var maximumRunningPerHost: Int
        /// Total rate limit in bytes per second; 0: no limit. Omitted from the JSON if 0.
        package var rateLimit: Int64
        /// Maximum number of active downloads by group, for groups with a limit.
        package var groups: [String: Int]
        /// Default directory of downloads.
        package var downloadsDirectory: String
        /// URLs of the web page; empty if the page is not served.
        package var pages: [String]
        /// Version of `towd`.
        package var version: String

        /// Creates a value.
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

        /// Decodes a value.
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

        /// Encodes the settings.
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

    /// Changes to the settings. Absent fields stay unchanged.
    package struct SettingsChange: Hashable, Sendable, Codable {
        /// Maximum number of active downloads.
        package var maximumRunning: Int?
        /// Maximum number of active downloads per host.
        package var maximumRunningPerHost: Int?
        /// Total rate limit in bytes per second; 0 or `null`: no limit.
        package var rateLimit: Update<Int64> = .keep
        /// Maximum number of active downloads by group; `null` removes the limit of a group.
        package var groups: [String: Int?]?

        private enum CodingKeys: String, CodingKey, CaseIterable {
            case maximumRunning, maximumRunningPerHost, rateLimit, groups
        }

        /// Creates an empty change.
        package init() {}

        /// Decodes a value. An unknown field is an error.
        package init(from decoder: any Decoder) throws {
            let members = try decoder.strictContainer(CodingKeys.self)
            maximumRunning = try members.decodeIfPresent(Int.self, forKey: .maximumRunning)
            maximumRunningPerHost = try members.decodeIfPresent(Int.self, forKey: .maximumRunningPerHost)
            rateLimit = try members.update(.rateLimit)
            groups = try members.decodeIfPresent([String: Int?].self, forKey: .groups)
        }

        /// Encodes the changed fields.
        package func encode(to encoder: any Encoder) throws {
            var members = encoder.container(keyedBy: CodingKeys.self)
            try members.encodeIfPresent(maximumRunning, forKey: .maximumRunning)
            try members.encodeIfPresent(maximumRunningPerHost, forKey: .maximumRunningPerHost)
            try members.encode(rateLimit, .rateLimit)
            try members.encodeIfPresent(groups, forKey: .groups)
        }
    }

    /// The request that signs in on the web page: with the access token, or with the code of a sign-in link.
    package enum Session: Hashable, Sendable, Decodable {
        /// Access token, as in the token file.
        case token(String)
        /// Code of a sign-in link.
        case code(String)

        private enum CodingKeys: String, CodingKey, CaseIterable { case token, code }

        /// Decodes a value. An unknown field, and any number of fields except one, is an error.
        package init(from decoder: any Decoder) throws {
            let members = try decoder.strictContainer(CodingKeys.self)
            if !members.contains(.token), members.contains(.code) {
                self = .code(try members.decode(String.self, forKey: .code))
            } else if members.contains(.code) {
                throw DecodingError.dataCorruptedError(
                    forKey: .code, in: members, debugDescription: "token and code together")
            } else {
                self = .token(try members.decode(String.self, forKey: .token))
            }
        }
    }

    /// How to sign in on the web page.
    package struct SignInHelp: Hashable, Sendable, Codable {
        /// Path of the file with the access token; `nil` for a client on another machine.
        package var tokenFile: String?

        /// Creates a value.
        package init(tokenFile: String?) { self.tokenFile = tokenFile }
    }

    /// A code that signs a browser in on the web page once: `PAGE#code=CODE`.
    package struct SignInCode: Hashable, Sendable, Codable {
        /// Code, 64 hexadecimal digits.
        package var code: String
        /// Time in milliseconds since 1970 until which the code is valid.
        package var expiresAt: Int64

        /// Creates a value.
        package init(code: String, expiresAt: Int64) {
            self.code = code
            self.expiresAt = expiresAt
        }
    }
}
