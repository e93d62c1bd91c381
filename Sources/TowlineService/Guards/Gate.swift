import HTTPTypes
import Hummingbird
import TowlineWire

/// Accepts or refuses requests. `docs/threat-model.md` describes the attackers.
///
/// The mode of the Unix socket admits only the owner of the service. A request over TCP needs the access token or a
/// session, and must not come from another site's page in the owner's browser.
struct Gate: RouterMiddleware {
    typealias Context = ServiceContext

    let token: AccessToken
    let sessions: SessionList
    let settings: LiveSettings

    private static let health = Wire.base + "/health"
    private static let session = Wire.base + "/session"

    func handle(
        _ request: Request, context: ServiceContext, next: (Request, ServiceContext) async throws -> Response
    ) async throws -> Response {
        if !context.isOverSocket {
            let host = try checkHost(request, context)
            try checkPath(request)
            // The files of the page are public. Without them, the page could not say why towd refuses its requests.
            if !Self.isPage(request.uri.path) { try checkOrigin(request, host) }
            try checkSite(request)
            try checkToken(request, context)
        }
        return try await next(request, context)
    }

    private func checkHost(_ request: Request, _ context: ServiceContext) throws -> String {
        guard let host = request.head.authority, settings.hosts.contains(host, at: context.local) else {
            let name = request.head.authority.flatMap { ServedName($0)?.name } ?? "NAME"
            throw HTTPError(
                .forbidden,
                message: "towd refuses this request because the Host header field is not an address of towd."
                    + " To allow this name, start towd with --host \(name)")
        }
        return host
    }

    /// Refuses other paths with the likely reason before `checkSite` and `checkToken`, whose reasons would mislead.
    private func checkPath(_ request: Request) throws {
        let path = Self.path(request.uri.path)
        guard !Self.isPage(path), !path.hasPrefix("/api/"), path != MetricRoutes.path else { return }
        throw HTTPError(
            .notFound,
            message: "towd has no page at this path. If towd is behind a reverse proxy that serves the page below a"
                + " path, the proxy must remove this path (docs/reverse-proxy.md)")
    }

    private func checkOrigin(_ request: Request, _ host: String) throws {
        guard let origin = request.headers[.origin], !settings.hosts.isOwn(origin, host: host) else { return }
        var message =
            "this request comes from a page of another site (Origin header field), so towd refuses it."
            + " Use the web page of towd, or send no Origin header field"
        // Quotes nothing else than a URL.
        if ServedName(origin)?.origins.contains(origin) == true {
            message =
                "towd does not know \(origin) as the address of its page, so it refuses this request. If this is the"
                + " page of towd behind a reverse proxy, start towd with --host \(origin)"
        }
        throw HTTPError(.forbidden, message: message)
    }

    private func checkSite(_ request: Request) throws {
        guard let name = HTTPField.Name("Sec-Fetch-Site"), let site = request.headers[name] else { return }
        // `none`: a typed URL or a bookmark. It may open the page or a file, but not change anything.
        let isPlain = [.get, .head].contains(request.method) && Self.isNavigable(request.uri.path)
        guard site == "same-origin" || site == "none" && isPlain || Self.opensThePage(request) else {
            throw HTTPError(
                .forbidden,
                message: "this request comes from a page of another site (Sec-Fetch-Site header field), so towd refuses"
                    + " it. Use the web page of towd")
        }
    }

    /// True for a top-level navigation to the page, such as the bookmarklet's. The page is public, cannot be framed,
    /// and adds downloads only after confirmation (Fetch Metadata, §2: `navigate` to a `document`).
    private static func opensThePage(_ request: Request) -> Bool {
        func field(_ name: String) -> String? { HTTPField.Name(name).flatMap { request.headers[$0] } }
        return request.method == .get && path(request.uri.path) == "/" && field("Sec-Fetch-Mode") == "navigate"
            && field("Sec-Fetch-Dest") == "document"
    }

    /// Returns whether requests for a path need no access token.
    private static func isPublic(_ path: String) -> Bool {
        let path = Self.path(path)
        return isPage(path) || path == health || path == session
    }

    private static func isNavigable(_ path: String) -> Bool { isPage(path) || path.hasSuffix("/content") }

    private static func isPage(_ path: String) -> Bool {
        let path = Self.path(path)
        return path == "/" || path.hasPrefix("/page/")
    }

    /// Returns a path with one slash at the beginning, as the router reads it. A proxy that removes a prefix without
    /// its slash (`location /towline { proxy_pass http://127.0.0.1:6880/; }`) sends two.
    private static func path(_ text: some StringProtocol) -> String { "/" + text.drop { $0 == "/" } }

    /// Returns the values of all cookies with this name. A page on another port of this machine can set a cookie of the
    /// same name, and a browser may send that cookie first (RFC 6265 §8.5).
    static func cookies(of request: Request, named name: String) -> [Substring] {
        request.headers[values: .cookie].flatMap { $0.split(separator: ";") }.compactMap { pair in
            let pair = pair.drop { $0 == " " || $0 == "\t" }
            return pair.hasPrefix(name + "=") ? pair.dropFirst(name.count + 1) : nil
        }
    }

    private func checkToken(_ request: Request, _ context: ServiceContext) throws {
        if isAuthenticated(request) { return context.authenticate() }
        // List the public paths, not the protected ones: a path can be written in more than one way.
        if Self.isPublic(request.uri.path) { return }
        throw HTTPError(
            .unauthorized, headers: [.wwwAuthenticate: "Bearer"],
            message:
                "access token required. Send the header field 'Authorization: Bearer TOKEN', or sign in on the web page"
        )
    }

    private func isAuthenticated(_ request: Request) -> Bool {
        if let field = request.headers[.authorization] {
            let words = field.split(separator: " ", maxSplits: 1)
            if words.count == 2, words[0].lowercased() == "bearer", token.isEqual(to: words[1]) { return true }
        }
        return Self.cookies(of: request, named: sessions.cookieName).contains { sessions.contains($0) }
    }
}
