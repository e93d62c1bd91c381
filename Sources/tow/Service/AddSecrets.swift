import TowlineCore
import TowlineCurl
import TowlineEngine
import TowlineWire

/// The secrets of the command line of `tow add`, for the servers that may receive them.
///
/// `tow add` reads the netrc file and the cookie file itself and sends `towd` only what a URL needs: `towd` reads no
/// file that a client names.
struct AddSecrets {
    private let settings: DownloadSettings
    private let netrc: [UInt8]
    private var scope: SecretScope

    /// - Parameters:
    ///   - settings: the settings of the command line.
    ///   - scope: the servers that may receive the secrets.
    init(settings: DownloadSettings, scope: SecretScope) {
        (self.settings, self.scope) = (settings, scope)
        netrc = NetrcFile(settings.connection.netrc).content
    }

    /// Returns a request with the secrets for its server, or without secrets if the server must not receive them.
    ///
    /// - Throws: `unusableOption` if more than one server would receive the secrets, or the cookie file cannot be read.
    mutating func complete(_ request: Wire.NewDownload) throws(TowlineError) -> Wire.NewDownload {
        var request = request
        // The service refuses a URL that cannot be parsed.
        guard let url = try? HTTPURL(parsing: request.url), try scope.admits(url.origin) else {
            request.user = nil
            request.headers = request.headers?.filter { !SecretScope.isSecret(fieldNamed: $0.name) }
            return request
        }
        if request.user == nil, url.userInfo == nil {
            request.user = NetrcFile.credentials(for: url.host, in: netrc)
        }
        let cookies = try settings.connection.storedCookies(for: url)
        if !cookies.isEmpty { request.cookies = cookies.joined(separator: "\n") }
        return request
    }
}

extension Wire.NewDownload {
    /// Copies the settings that the service accepts. `AddSecrets` adds the options `netrc`, `netrc-file` and `cookies`.
    mutating func take(_ settings: DownloadSettings) {
        options = settings.options
        if !settings.mirrors.isEmpty { mirrors = settings.mirrors.map(\.requestText) }
        let fields = settings.userFields.lines
        if !fields.isEmpty { headers = fields.map { Wire.Header(name: $0.name, value: $0.value) } }
        user = settings.connection.user
        proxy = settings.connection.proxy
    }
}
