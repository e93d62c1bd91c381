import HTTPTypes
import Hummingbird

/// All that can be asked of the service: paths, methods, and who answers.
struct RouteTable {
    typealias Handler = @Sendable (Request, ServiceContext) async throws -> Response

    /// By path, as the OpenAPI document writes it.
    private(set) var handlers: [String: [HTTPRequest.Method: Handler]] = [:]

    /// Adds an answer. Who answers GET answers HEAD too.
    mutating func add(_ method: HTTPRequest.Method, _ path: String, _ handler: @escaping Handler) {
        handlers[path, default: [:]][method] = handler
        if method == .get, handlers[path]?[.head] == nil {
            handlers[path, default: [:]][.head] = { try await handler($0, $1).createHeadResponse() }
        }
    }

    private static let methods: [HTTPRequest.Method] = [
        .get, .head, .post, .put, .patch, .delete, .options, .trace,
    ]

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
