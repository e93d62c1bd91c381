import HTTPTypes
import Hummingbird
import TowlineWire

/// Lets a request in, or says why not. `docs/threat-model.md` tells against whom.
///
/// Over the Unix socket everybody is the owner of the service: the file's mode is the guard. Over TCP a request needs
/// the token, and must not have been made by a page of somebody else in the owner's browser.
struct Gate: RouterMiddleware {
    typealias Context = ServiceContext

    let token: AccessToken
    let hosts: HostList

    /// The name of the page's cookie.
    static let cookie = "towline"
    private static let health = Wire.base + "/health"
    private static let session = Wire.base + "/session"

    func handle(
        _ request: Request, context: ServiceContext, next: (Request, ServiceContext) async throws -> Response
    ) async throws -> Response {
        if !context.isOverSocket {
            let host = try checkHost(request, context)
            try checkOrigin(request, host)
            try checkToken(request)
        }
        return try await next(request, context)
    }

    private func checkHost(_ request: Request, _ context: ServiceContext) throws -> String {
        guard let host = request.head.authority, hosts.contains(host, at: context.local) else {
            throw HTTPError(.forbidden, message: "the Host field names another server; see --host")
        }
        return host
    }

    private func checkOrigin(_ request: Request, _ host: String) throws {
        let isOurs = { origin in origin == "http://" + host || origin == "https://" + host && hosts.isGiven(host) }
        if let origin = request.headers[.origin], !isOurs(origin) {
            throw HTTPError(.forbidden, message: "the request comes from a page of another origin")
        }
        guard let name = HTTPField.Name("Sec-Fetch-Site"), let site = request.headers[name] else { return }
        // `none`: typed, or from a bookmark. That opens the page or a file, and does nothing.
        let isPlain = [.get, .head].contains(request.method) && Self.isNavigable(request.uri.path)
        guard site == "same-origin" || site == "none" && isPlain || Self.opensThePage(request) else {
            throw HTTPError(.forbidden, message: "the request comes from another site")
        }
    }

    /// The bookmarklet opens the page from wherever one is. The page is the same for everybody, may not be framed, and
    /// adds nothing unasked (Fetch Metadata, §2: `navigate` to a `document` is a page of its own).
    private static func opensThePage(_ request: Request) -> Bool {
        func field(_ name: String) -> String? { HTTPField.Name(name).flatMap { request.headers[$0] } }
        return request.method == .get && request.uri.path == "/" && field("Sec-Fetch-Mode") == "navigate"
            && field("Sec-Fetch-Dest") == "document"
    }

    private static func isNavigable(_ path: String) -> Bool { isPage(path) || path.hasSuffix("/content") }

    private static func isPage(_ path: String) -> Bool { path == "/" || path.hasPrefix("/page/") }

    private func checkToken(_ request: Request) throws {
        let path = request.uri.path
        // What is open is listed, never what is closed: there is more than one way to write a path.
        if Self.isPage(path) || path == Self.health || path == Self.session { return }
        if let field = request.headers[.authorization] {
            let words = field.split(separator: " ", maxSplits: 1)
            if words.count == 2, words[0].lowercased() == "bearer", token.isEqual(to: words[1]) { return }
        } else if let cookie = request.cookies[Self.cookie]?.value, token.isEqual(to: cookie) {
            return
        }
        throw HTTPError(
            .unauthorized, headers: [.wwwAuthenticate: "Bearer"], message: "this needs the token of the service")
    }
}
