import HTTPTypes
import Hummingbird
import TowlineWire

/// Routes to sign in and out on the web page.
struct SessionRoutes: Sendable {
    let token: AccessToken
    let sessions: SessionList
    let codes: SignInCodes

    /// Maximum size in bytes of the body of a sign-in, which needs no access token.
    private static let maximumBody = 4 << 10

    func add(to table: inout RouteTable) {
        // Public: the page asks before the sign-in.
        table.add(.get, Wire.base + "/session") { request, context in
            let isHere = context.isLocal && Self.isDirect(request)
            return try Answer.json(Wire.SignInHelp(tokenFile: isHere ? token.path : nil))
        }
        table.add(.post, Wire.base + "/session") { request, context in
            switch try await Answer.read(Wire.Session.self, from: request, limit: Self.maximumBody) {
            case .token(let text):
                guard token.isEqual(to: text) else {
                    throw Self.refusal(
                        "wrong access token. The token is in the file 'token' in the state directory of towd")
                }
            case .code(let code):
                guard codes.use(code) else {
                    throw Self.refusal(
                        "this sign-in link was used already, or it is too old. 'tow page' prints a new link")
                }
            }
            context.authenticate()
            let value = sessions.start(insteadOf: cookies(of: request))
            return answer(request, cookie: value, lifetime: SessionList.lifetime)
        }
        // Needs the token or a session, as all routes that are not public.
        table.add(.post, Wire.base + "/session/codes", takesBody: false) { _, _ in
            try Answer.json(codes.make(), status: .created)
        }
        // Needs no session, so that a browser can also clear the cookie of a session that has ended.
        table.add(.delete, Wire.base + "/session") { request, _ in
            try sessions.end(cookies(of: request))
            return answer(request, cookie: "", lifetime: 0)
        }
    }

    /// Returns false if a proxy in front of the service says that it forwards the request: the client of the proxy may
    /// be anywhere. The `Host` field of a client on this machine names the machine.
    private static func isDirect(_ request: Request) -> Bool {
        let fields = ["Forwarded", "X-Forwarded-For", "X-Real-IP", "Via"].compactMap { HTTPField.Name($0) }
        guard !fields.contains(where: { request.headers[$0] != nil }) else { return false }
        let host = request.head.authority.flatMap { ServedName($0)?.name } ?? ""
        return host == "localhost" || host == "[::1]" || ServiceContext.isLoopback(host)
    }

    private static func refusal(_ message: String) -> HTTPError {
        HTTPError(.unauthorized, headers: [.wwwAuthenticate: "Bearer"], message: message)
    }

    private func cookies(of request: Request) -> [Substring] { Gate.cookies(of: request, named: sessions.cookieName) }

    /// Returns a response that sets the session cookie, or removes it if its lifetime is 0.
    private func answer(_ request: Request, cookie value: String, lifetime: Int64) -> Response {
        // Only a page behind a TLS proxy has such an origin: `Gate` refuses all others.
        let isSecure = request.headers[.origin]?.hasPrefix("https://") == true
        var response = Answer.nothing()
        response.headers[.setCookie] =
            "\(sessions.cookieName)=\(value); Path=/; Max-Age=\(lifetime); HttpOnly; SameSite=Strict"
            + (isSecure ? "; Secure" : "")
        return response
    }
}
