internal import Foundation
import HTTPTypes
import Hummingbird

/// All that can be asked of the service: paths, methods, and who answers.
struct RouteTable {
    typealias Handler = @Sendable (Request, ServiceContext) async throws -> Response

    /// By path, as the OpenAPI document writes it.
    private(set) var handlers: [String: [HTTPRequest.Method: Handler]] = [:]

    /// Adds an answer. Who answers GET answers HEAD too.
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

    /// JSON alone: a form of another site can post text without asking, but not this.
    private static func checkBody(_ request: Request) throws {
        let type = request.headers[.contentType]?.prefix { $0 != ";" }.lowercased()
        if type?.trimmingCharacters(in: .whitespaces) == "application/json" { return }
        // An action says everything in its path.
        let isEmpty = request.headers[.contentLength].map { $0 == "0" } ?? (request.headers[.transferEncoding] == nil)
        if type == nil, isEmpty, request.uri.path.contains("/actions/") { return }
        throw HTTPError(.unsupportedMediaType, message: "the body is to be application/json")
    }

    private static let methods: [HTTPRequest.Method] =
        [.get, .head, .post, .put, .patch, .delete, .options, .trace, .connect]
        + [HTTPRequest.Method("QUERY")].compactMap { $0 }

    /// A router with all of it, behind guards.
    func router(_ guards: [any MiddlewareProtocol<Request, Response, ServiceContext>]) -> Router<ServiceContext> {
        let router = Router(context: ServiceContext.self)
        for middleware in guards { router.add(middleware: middleware) }
        for (path, answers) in handlers {
            let allowed = answers.keys.map(\.rawValue).sorted().joined(separator: ", ")
            for method in Self.methods {
                let handler =
                    answers[method] ?? { _, _ in
                        throw HTTPError(.methodNotAllowed, headers: [.allow: allowed], message: "use \(allowed)")
                    }
                router.on(RouterPath(path), method: method, use: handler)
            }
        }
        return router
    }
}
