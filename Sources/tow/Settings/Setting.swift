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
}
