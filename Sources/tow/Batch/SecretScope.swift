import TowlineCore
import TowlineEngine

/// The servers that receive the secrets of the command line when URLs come from a list.
///
/// A list may come from somebody else and can name any server. The secrets are sent to the servers that the command
/// line names; if the command line names no server, to the only server of the list.
struct SecretScope: Sendable {
    /// The origins that the command line names, each once.
    let named: [HTTPURL.Origin]
    /// The only origin of the list, once an entry names it.
    private var only: HTTPURL.Origin?

    /// - Parameter origins: the origins that the command line names.
    init(naming origins: [HTTPURL.Origin]) {
        var named: [HTTPURL.Origin] = []
        for origin in origins where !named.contains(origin) { named.append(origin) }
        self.named = named
    }

    /// Returns whether a server receives the secrets.
    ///
    /// - Throws: `unusableOption` if the server is not the only server of the list.
    mutating func admits(_ origin: HTTPURL.Origin) throws(TowlineError) -> Bool {
        guard named.isEmpty else { return named.contains(origin) }
        guard let only else {
            only = origin
            return true
        }
        guard only == origin else { throw Self.ambiguous(only, origin) }
        return true
    }

    private static func ambiguous(_ first: HTTPURL.Origin, _ second: HTTPURL.Origin) -> TowlineError {
        TowlineError(
            .unusableOption,
            "the list names more than one server (\(first) and \(second)), and each would receive the password, header or "
                + "cookies of the command line. Name the server that may have them with --credentials-for URL")
    }

    /// Checks every list that can be read twice, before the first request.
    ///
    /// - Parameter urls: the URLs of the command line.
    /// - Throws: `unusableOption` if the lists name more than one server and the command line names none, or if the
    ///   command line names a server that no URL has: a download without its password would fail or be another file.
    nonisolated(nonsending) func check(lists: [String], urls: [HTTPURL]) async throws(TowlineError) {
        var scope = self
        var isUsed = urls.contains { named.contains($0.origin) }
        var last: HTTPURL?
        // A pipe is read once, while downloads run.
        let readable = lists.filter { $0 != "-" && TextFile.isRegular($0) }
        for path in readable where !isUsed {
            let reader = try BatchListReader(path: path)
            while let entry = await reader.next() {
                guard let url = try? HTTPURL(typed: entry.url, after: last) else { continue }
                last = url
                if try scope.admits(url.origin), !named.isEmpty { isUsed = true }
                if isUsed { break }
            }
        }
        guard let unused = named.first, !isUsed, readable.count == lists.count else { return }
        throw TowlineError(
            .unusableOption,
            "no URL is on the server \(unused) of --credentials-for, so no server would receive the password, header or cookies. "
                + "Scheme, host and port must match")
    }
}

extension SecretScope {
    /// Returns whether a header field of the user may contain a secret: all fields except those that only describe the
    /// program and its user.
    static func isSecret(fieldNamed name: String) -> Bool {
        !["accept", "accept-language", "user-agent"].contains(name.lowercased())
    }
}

extension DownloadSettings {
    /// Returns whether requests with these settings carry a secret.
    var hasSecrets: Bool {
        connection.user != nil || connection.cookieFile != nil || connection.netrc != .none
            || connection.clientCertificate != nil
            || userFields.lines.contains { SecretScope.isSecret(fieldNamed: $0.name) }
    }

    /// A copy of these settings without the secrets, for another server.
    var withoutSecrets: DownloadSettings {
        var settings = self
        settings.connection.user = nil
        settings.connection.cookieFile = nil
        // Another entry may have logged in with the secrets: its cookies are secrets too.
        settings.connection.cookies = CookieJar()
        settings.connection.netrc = .none
        settings.connection.clientCertificate = nil
        settings.userFields = HTTPFields()
        for field in userFields.lines where !SecretScope.isSecret(fieldNamed: field.name) {
            settings.userFields.append(field)
        }
        return settings
    }
}
