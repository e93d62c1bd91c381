import TowlineCore
import TowlineEngine

/// The options that can differ between downloads. On the command line, with two hyphens, an option applies to all
/// downloads; in a list of URLs, without hyphens, to the URL above it.
enum Setting: String, CaseIterable {
    case output
    case directory
    case ifExists = "if-exists"
    case ifChanged = "if-changed"
    case noSync = "no-sync"
    case noPreallocate = "no-preallocate"
    case unsafeResume = "unsafe-resume"
    case checksum
    case ignoreServerChecksums = "ignore-server-checksums"
    case ignoreLength = "ignore-length"
    case acceptHTML = "accept-html"
    case mirror
    case connections
    case limitRate = "limit-rate"
    case maxSize = "max-size"
    case sequential
    case header
    case user
    case userFile = "user-file"
    case bearerFile = "bearer-file"
    case netrc
    case netrcFile = "netrc-file"
    case cookies
    case proxy
    case noProxy = "no-proxy"
    case resolve
    case ipv4
    case ipv6
    case cacert
    case cert
    case key
    case keyPasswordFile = "key-password-file"
    case insecure
    case http1
    case connectTimeout = "connect-timeout"
    case headTimeout = "head-timeout"
    case stallTimeout = "stall-timeout"
    case maxTries = "max-tries"
    case retryWait = "retry-wait"
    case maxWait = "max-wait"
    case retryOn = "retry-on"
    case maxRedirects = "max-redirects"
    case allowDowngrade = "allow-downgrade"

    /// Returns whether a list of URLs may set the option without `--list-options all`: names below the directory of
    /// `-d`, checksums, mirrors and rates. Other options could read local files, weaken TLS or overwrite files.
    var isSafeInList: Bool {
        switch self {
        case .output, .directory, .checksum, .mirror, .limitRate: true
        default: false
        }
    }

    /// Returns whether the option is a flag, which has no value.
    var isFlag: Bool {
        switch self {
        case .noSync, .noPreallocate, .unsafeResume, .ignoreServerChecksums, .ignoreLength, .acceptHTML, .sequential,
            .netrc, .insecure, .http1, .allowDowngrade, .noProxy, .ipv4, .ipv6:
            true
        default: false
        }
    }

    /// Returns whether the option may be given once at most and does not depend on the order of the options, so that
    /// `GetShortcut` can read it.
    var isPlain: Bool {
        switch self {
        case .output, .directory, .ifExists, .ifChanged, .noSync, .noPreallocate, .unsafeResume, .checksum,
            .ignoreServerChecksums, .ignoreLength, .acceptHTML, .connections, .limitRate, .sequential, .proxy, .cacert,
            .insecure, .http1, .connectTimeout, .stallTimeout, .maxTries, .maxSize, .retryWait, .retryOn,
            .maxRedirects, .allowDowngrade, .headTimeout, .maxWait, .cert, .key:
            true
        default: false
        }
    }
}

extension DownloadSettings {
    /// Sets one option from text.
    ///
    /// - Throws: `unusableOption` or `unusableHeader`; the message does not name the option and never shows a secret.
    mutating func apply(_ setting: Setting, _ value: String) throws(TowlineError) {
        if setting.isFlag { return apply(flag: setting) }
        if try applyConnection(setting, value) { return }
        if try applyCertificate(setting, value) { return }
        switch setting {
        case .output: output = OutputPath.isStandard(value) ? "-" : try OptionValue.text(value)
        case .directory: directory = try OptionValue.text(value)
        case .ifExists: options.existing = try OptionValue.choice(value)
        case .ifChanged: changed = try OptionValue.choice(value)
        case .checksum: try add(checksum: Checksum(parsing: value))
        case .mirror: try add(mirror: HTTPURL(mirror: value))
        case .connections: options.connections = try OptionValue.integer(value, in: 1...128)
        case .maxSize: options.maximumSize = try OptionValue.size(value)
        case .limitRate: options.rateLimit = try OptionValue.rate(value)
        case .stallTimeout: options.stallTimeout = try OptionValue.seconds(value)
        case .maxTries: options.maximumTries = try OptionValue.integer(value, in: 0...1_000_000)
        case .retryWait: options.retryWait = try OptionValue.seconds(value)
        case .maxWait: options.maximumWait = try OptionValue.seconds(value, atMost: 366 * 86_400)
        case .retryOn: options.retryStatuses.formUnion(try OptionValue.statuses(value))
        case .maxRedirects: options.maximumRedirects = try OptionValue.integer(value, in: 0...100)
        default: break
        }
    }

    /// Sets the checksum. Throws if a different one is set: a user would expect both to be verified.
    private mutating func add(checksum other: Checksum) throws(TowlineError) {
        guard options.checksum == nil || options.checksum == other else {
            throw TowlineError(.unusableOption, "two different checksums were given for one file. Give only one")
        }
        options.checksum = other
    }

    private mutating func add(mirror: HTTPURL) throws(TowlineError) {
        guard mirrors.count < DownloadOptions.mostMirrors else {
            throw TowlineError(
                .unusableOption, "too many mirrors: the limit is \(DownloadOptions.mostMirrors) per file. Remove some")
        }
        if !mirrors.contains(mirror) { mirrors.append(mirror) }
    }

    private mutating func apply(flag: Setting) {
        switch flag {
        case .noSync: durable = false
        case .noPreallocate: reservesSpace = false
        case .unsafeResume: options.allowsUnsafeResume = true
        case .ignoreServerChecksums: options.ignoresServerChecksums = true
        case .ignoreLength: connection.ignoresLength = true
        case .acceptHTML: options.acceptsWebPages = true
        case .sequential: options.isSequential = true
        case .netrc: connection.netrc = .userFile
        case .insecure: connection.allowsInsecure = true
        case .http1: options.usesHTTP1Only = true
        case .allowDowngrade: options.allowsDowngrade = true
        case .noProxy: connection.proxy = connection.proxy ?? ""
        case .ipv4: connection.addressFamily = .ipv4
        case .ipv6: connection.addressFamily = .ipv6
        default: break
        }
    }

    /// Applies a setting of the request or the connection. Returns `false` if the setting is of another kind.
    private mutating func applyConnection(_ setting: Setting, _ value: String) throws(TowlineError) -> Bool {
        switch setting {
        case .header: userFields.append(try OptionValue.field(value))
        case .user: connection.user = try OptionValue.credentials(value)
        case .userFile: connection.user = try OptionValue.credentials(OptionValue.secret(inFile: value))
        case .bearerFile:
            userFields.append(try OptionValue.field("Authorization: Bearer " + OptionValue.secret(inFile: value)))
        case .netrcFile: connection.netrc = .file(try OptionValue.readableFile(value))
        case .cookies:
            connection.cookieFile = try CookieFile.checked(value)
            connection.cookies = CookieJar()
        case .proxy: connection.proxy = try OptionValue.proxy(value)
        case .cacert: connection.certificateAuthorityFile = try OptionValue.certificateFile(value)
        case .connectTimeout: connection.connectTimeout = try OptionValue.seconds(value)
        case .headTimeout: connection.headTimeout = try OptionValue.seconds(value)
        case .resolve: connection.fixedAddresses.append(try OptionValue.fixedAddresses(value))
        default: return false
        }
        return true
    }
}

extension DownloadSettings {
    /// Applies a setting of the client certificate. Returns `false` if the setting is of another kind. `--cert` may
    /// follow the others, so `options(for:)` checks them together.
    fileprivate mutating func applyCertificate(_ setting: Setting, _ value: String) throws(TowlineError) -> Bool {
        var certificate = connection.clientCertificate ?? ConnectionOptions.ClientCertificate(file: "")
        switch setting {
        case .cert: (certificate.file, certificate.form) = try OptionValue.clientCertificate(value)
        case .key: certificate.keyFile = try OptionValue.readableFile(value)
        case .keyPasswordFile: certificate.keyPassword = try OptionValue.secret(inFile: value)
        default: return false
        }
        connection.clientCertificate = certificate
        return true
    }
}

extension HTTPFields {
    fileprivate mutating func append(_ field: Field) { append(name: field.name, value: field.value) }
}
