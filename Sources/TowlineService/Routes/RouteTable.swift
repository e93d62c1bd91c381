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
    /// - Parameters:
    ///   - parameters: the names of the query parameters that the handler reads. The API refuses every other parameter,
    ///     so that a misspelled filter does not select all downloads.
    ///   - takesBody: `true` if the handler of a POST or PATCH reads the body. For other handlers, and for every DELETE,
    ///     a body with fields is refused, because the fields would have no effect.
    mutating func add(
        _ method: HTTPRequest.Method, _ path: String, parameters: Set<String> = [], takesBody: Bool = true,
        _ handler: @escaping Handler
    ) {
        let isJSON = method == .post || method == .patch
        let isOfAPI = path.hasPrefix(Wire.base) || path == MetricRoutes.path
        handlers[path, default: [:]][method] = { request, context in
            if isOfAPI { try Self.checkParameters(request, parameters) }
            if isJSON { try Self.checkType(request, mayBeAbsent: !takesBody) }
            if method == .delete || isJSON && !takesBody { try await Self.checkNoFields(request, parameters) }
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
    private static func checkType(_ request: Request, mayBeAbsent: Bool) throws {
        let type = request.headers[.contentType]?.prefix { $0 != ";" }.lowercased()
        if type?.trimmingCharacters(in: .whitespaces) == "application/json" { return }
        let isEmpty = request.headers[.contentLength].map { $0 == "0" } ?? (request.headers[.transferEncoding] == nil)
        if type == nil, isEmpty, mayBeAbsent { return }
        throw HTTPError(
            .unsupportedMediaType,
            message: "the request body must be JSON. Send the header field Content-Type: application/json")
    }

    /// Maximum size in bytes of a body without fields, which may contain white space.
    private static let maximumEmptyBody = 4 << 10

    /// Accepts an empty body and an empty JSON object only.
    private static func checkNoFields(_ request: Request, _ parameters: Set<String>) async throws {
        do {
            _ = try await Answer.read(Wire.NoFields.self, from: request, limit: maximumEmptyBody, mayBeEmpty: true)
        } catch let error as DecodingError {
            let names = parameters.sorted().joined(separator: ", ")
            throw HTTPError(
                .badRequest,
                message: ProblemMiddleware.detail(error) + ". This request takes no fields in a body"
                    + (names.isEmpty ? "" : ". It has these query parameters: \(names)"))
        }
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
