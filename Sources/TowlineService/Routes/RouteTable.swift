internal import Foundation
import HTTPTypes
import Hummingbird
internal import Towline
import TowlineWire

/// The routes of the service: paths, methods and handlers.
struct RouteTable {
    typealias Handler = @Sendable (Request, ServiceContext) async throws -> Response

    /// Handlers by path, in the notation of the OpenAPI document.
    private(set) var handlers: [String: [HTTPRequest.Method: Handler]] = [:]

    /// Adds a handler. A handler for GET also handles HEAD.
    ///
    /// - Parameter parameters: the names of the query parameters that the handler reads. The API refuses every other
    ///   parameter, so that a misspelled filter does not select all downloads.
    mutating func add(
        _ method: HTTPRequest.Method, _ path: String, parameters: Set<String> = [], _ handler: @escaping Handler
    ) {
        let hasBody = method == .post || method == .patch
        let isOfAPI = path.hasPrefix(Wire.base)
        handlers[path, default: [:]][method] = { request, context in
            if isOfAPI { try Self.checkParameters(request, parameters) }
            if hasBody { try Self.checkBody(request) }
            return try await handler(request, context)
        }
        if method == .get, handlers[path]?[.head] == nil {
            handlers[path, default: [:]][.head] = { try await handler($0, $1).createHeadResponse() }
        }
    }

    private static func checkParameters(_ request: Request, _ known: Set<String>) throws {
        var given: Set<Substring> = []
        if let again = request.uri.queryParameters.first(where: { !given.insert($0.key).inserted }) {
            let name = TerminalSafeText.make(String(again.key), width: 60)
            throw HTTPError(.badRequest, message: "\(name): the query parameter occurs more than once")
        }
        guard let unknown = request.uri.queryParameters.first(where: { !known.contains(String($0.key)) }) else {
            return
        }
        let name = TerminalSafeText.make(String(unknown.key), width: 60)
        throw HTTPError(
            .badRequest,
            message: known.isEmpty
                ? "\(name): unknown query parameter. This path has no query parameters"
                : "\(name): unknown query parameter. Expected: \(known.sorted().joined(separator: ", "))")
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
