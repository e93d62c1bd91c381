import Foundation
import TowlineCore
import TowlineEngine

extension DownloadRequest {
    /// The URL of the request, parsed strictly. Throws `unusableURL` if the URL is not a valid HTTP or HTTPS URL.
    var source: HTTPURL {
        get throws(TowlineError) { try HTTPURL(parsing: url.absoluteString) }
    }

    /// The destination: an absolute directory, and the file name, or `nil` if the server or the URL supplies the name.
    /// Throws `unusableDestination` if the destination is not a file URL.
    package var place: (directory: String, name: String?) {
        get throws(TowlineError) {
            switch destination {
            case .directory(let url):
                guard url.isFileURL else { throw Self.noFile(url) }
                return (url.standardizedFileURL.path, nil)
            case .file(let url):
                guard url.isFileURL else { throw Self.noFile(url) }
                let path = url.standardizedFileURL
                guard !path.lastPathComponent.isEmpty, path.lastPathComponent != "/" else { throw Self.noFile(url) }
                return (path.deletingLastPathComponent().path, path.lastPathComponent)
            }
        }
    }

    private static func noFile(_ url: URL) -> TowlineError {
        let scheme = url.scheme ?? "(none)"
        return TowlineError(
            .unusableDestination,
            "invalid destination with the URL scheme \(scheme): expected the path of a local file or directory")
    }

    /// Replaces the URL with another link to the same file. If the link has another origin (scheme, host or port),
    /// credentials, header fields and cookies of the request are removed, as after a redirect (RFC 9110 §15.4). Header
    /// fields of the link are then set.
    package mutating func follow(_ link: RenewedLink) {
        let old = try? source.origin
        url = link.url
        if (try? source.origin) != old {
            (user, cookies, headers) = (nil, nil, [])
        }
        if let fields = link.headers { headers = fields }
    }

    /// Removes the secrets of the request: credentials, header fields, cookies, the proxy and secret parts of URLs.
    /// Only a transfer needs them, so a finished download does not keep them.
    mutating func forgetSecrets() {
        (user, proxy, cookies, headers) = (nil, nil, nil, [])
        url = Self.withoutSecrets(url)
        mirrors = mirrors.map { Self.withoutSecrets($0) }
    }

    private static func withoutSecrets(_ url: URL) -> URL {
        guard let known = try? HTTPURL(parsing: url.absoluteString),
            known.userInfo != nil || known.withoutSecrets != known.requestText
        else { return url }
        return URL(string: known.withoutSecrets) ?? url
    }

    /// Throws the error of the first invalid value of the request, such as an unusable URL or option. Does not check
    /// follow-ups.
    package func check() throws(TowlineError) { _ = try options(known: nil) }

    /// Checks the request and returns it as the options of a transfer. Throws the error of the first invalid value.
    ///
    /// - Parameter known: the file name that an earlier run learned from the server; `nil` if unknown.
    func options(known: String?) throws(TowlineError) -> DownloadOptions {
        let place = try place
        try self.options.validate()
        var transfer = self.options
        transfer.maximumTries = transfer.maximumTries ?? Self.triesBeforeWaiting
        var options = DownloadOptions(
            url: try source, target: .file(directory: place.directory, name: place.name ?? known), transfer: transfer,
            connection: try connection)
        options.hasLearnedName = place.name == nil
        guard mirrors.count <= DownloadOptions.mostMirrors else {
            throw TowlineError(
                .unusableOption, "too many mirrors: got \(mirrors.count), the limit is \(DownloadOptions.mostMirrors)")
        }
        options.isRepeated = self.options.maximumTries == nil
        options.mirrors = try mirrors.map { url throws(TowlineError) in try HTTPURL(mirror: url.absoluteString) }
        try options.checkMirrors()
        for header in headers {
            let field = try FieldValidation.parseUserHeader("\(header.name): \(header.value)")
            options.userFields.append(name: field.name, value: field.value)
        }
        return options
    }

    private var connection: ConnectionOptions {
        get throws(TowlineError) {
            if let proxy, !proxy.isEmpty {
                _ = try ProxyAddress(parsing: proxy)
                // A proxy could connect to any address.
                guard !publicAddressesOnly else {
                    throw TowlineError(
                        .unusableOption,
                        "proxy: not allowed for a download that may connect to public addresses only. Remove the proxy")
                }
            }
            var connection = ConnectionOptions()
            connection.user = user
            connection.proxy = proxy
            connection.certificateAuthorityFile = certificateAuthorities?.path
            if let netrcFile {
                // libcurl would send the request without credentials.
                guard FileManager.default.isReadableFile(atPath: netrcFile.path) else {
                    let path = TerminalSafeText.make(netrcFile.path)
                    throw TowlineError(
                        .unusableOption, "netrcFile: cannot read \(path). Check the path and its permissions")
                }
                connection.netrc = .file(netrcFile.path)
            }
            connection.publicAddressesOnly = publicAddressesOnly
            if let cookies { connection.cookies = try CookieJar(netscape: cookies) }
            return connection
        }
    }

    /// The number of consecutive attempts without a byte after which a download waits, if `maximumTries` is `nil`.
    /// While the download waits, another download can run.
    private static let triesBeforeWaiting = 4

    /// Returns a key that is equal for two requests with the same URL and the same directory, whatever the file name.
    /// The registry uses the key to recognize a download that is added again: two downloads of one URL in one directory
    /// would write the same part file.
    package func identity() throws(TowlineError) -> String {
        let place = try place
        let source = try source
        return [source.userInfo ?? "", source.requestText, place.directory].joined(separator: "\n")
    }
}
