internal import Foundation
import HTTPTypes
import Hummingbird

/// The routes of the service: paths, methods and handlers.
struct RouteTable {
    typealias Handler = @Sendable (Request, ServiceContext) async throws -> Response

    /// Handlers by path, in the notation of the OpenAPI document.
    private(set) var handlers: [String: [HTTPRequest.Method: Handler]] = [:]

    /// Adds a handler. A handler for GET also handles HEAD.
    mutating func add(_ method: HTTPRequest.Method, _ path: String, _ handler: @escaping Handler) {
        handlers[path, default: [:]][method] =
            method != .post && method != .patch
            ? handler
            : { request, context in
                try Self.checkBody(request)
                return try await handler(request, context)
            }
        if method == .get, handlers[path]?[.head] == nil {
            handlers[path, default: [:]][.head] = { try await handler($0, $1).createHeadResponse() }
        }
    }

    /// Accepts JSON only: a form of another site can send text without a preflight request, but not JSON.
    private static func checkBody(_ request: Request) throws {
        let type = request.headers[.contentType]?.prefix { $0 != ";" }.lowercased()
        if type?.trimmingCharacters(in: .whitespaces) == "application/json" { return }
        // An action and a new sign-in code need no body.
        let isEmpty = request.headers[.contentLength].map { $0 == "0" } ?? (request.headers[.transferEncoding] == nil)
        if type == nil, isEmpty, Self.needsNoBody(request.uri.path) { return }
        throw HTTPError(
            .unsupportedMediaType,
            message: "the request body must be JSON. Send the header field Content-Type: application/json")
    }

    private static func needsNoBody(_ path: String) -> Bool {
        path.contains("/actions/") || path.hasSuffix("/session/codes")
    }

    private static let methods: [HTTPRequest.Method] =
        [.get, .head, .post, .put, .patch, .delete, .options, .trace, .connect]
        + [HTTPRequest.Method("QUERY")].compactMap { $0 }

    /// Returns a router with all routes, protected by `guards`.
    func router(_ guards: [any MiddlewareProtocol<Request, Response, ServiceContext>]) -> Router<ServiceContext> {
        let router = Router(context: ServiceContext.self)
        for middleware in guards { router.add(middleware: middleware) }
        for (path, answers) in handlers {
            let allowed = answers.keys.map(\.rawValue).sorted().joined(separator: ", ")
            for method in Self.methods {
                let handler =
                    answers[method] ?? { _, _ in
                        throw HTTPError(
                            .methodNotAllowed, headers: [.allow: allowed],
                            message: "this method is not supported here. Supported methods: \(allowed)")
                    }
                router.on(RouterPath(path), method: method, use: handler)
            }
        }
        return router
    }
}
