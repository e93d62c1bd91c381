import TowlineCore
import TowlineEngine

/// What a user asks of downloads, before there is a URL: defaults, then the command line, then what a list of URLs
/// says of one of them.
struct DownloadSettings {
    /// `-o`: a path, or `-`.
    var output: String?
    var directory = "."
    var connections: Int?
    var rateLimit: Int64?
    var checksum: Checksum?
    var userFields = HTTPFields()
    var connection = ConnectionOptions()
    var maxTries = 20
    var retryWait = Duration.seconds(1)
    var stallTimeout = Duration.seconds(30)
    var maxRedirects = 10
    var allowsDowngrade = false
    var existing = ExistingPolicy.fail
    var durable = true
    var unsafeResume = false
    var sequential = false
    var restartsChanged = true
    var reservesSpace = true

    /// The whole of what is asked of one download.
    func options(for url: HTTPURL) throws(TowlineError) -> DownloadOptions {
        var options = DownloadOptions(url: url, target: try target())
        options.connections = connections
        options.rateLimit = rateLimit
        options.checksum = checksum
        options.userFields = userFields
        options.connection = connection
        if connection.user == nil, let user = url.userInfo {
            options.connection.user = user.contains(":") ? user : user + ":"
        }
        options.maxTries = maxTries
        options.retryWait = retryWait
        options.stallTimeout = stallTimeout
        options.maxRedirects = maxRedirects
        options.allowsDowngrade = allowsDowngrade
        options.existing = existing
        options.durable = durable
        options.unsafeResume = unsafeResume
        options.sequential = sequential
        options.restartsChanged = restartsChanged
        options.reservesSpace = reservesSpace
        return options
    }

    /// `-o` below `-d`, unless it is an absolute path.
    private func target() throws(TowlineError) -> DownloadOptions.Target {
        guard let output else { return .file(directory: directory, name: nil) }
        if output == "-" { return .standardOutput }
        let slash = output.lastIndex(of: "/")
        let name = slash.map { output[output.index(after: $0)...] } ?? output[...]
        guard !name.isEmpty, name != ".", name != ".." else {
            throw TowlineError(
                .unusableOption, "'\(TerminalSafeText.make(output))' names no file; -d takes a directory")
        }
        guard let slash else { return .file(directory: directory, name: String(name)) }
        let parent = slash == output.startIndex ? "/" : String(output[..<slash])
        let isBelow = !output.hasPrefix("/") && directory != "."
        return .file(directory: isBelow ? directory + "/" + parent : parent, name: String(name))
    }
}
