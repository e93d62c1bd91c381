internal import Foundation
import HTTPTypes
import Hummingbird
internal import Towline
import TowlineWire

/// Turns errors into problem details (RFC 9457), and gives every answer the header fields that keep pages of others
/// away from it.
struct ProblemMiddleware: RouterMiddleware {
    typealias Context = ServiceContext

    func handle(
        _ request: Request, context: ServiceContext, next: (Request, ServiceContext) async throws -> Response
    ) async throws -> Response {
        var response: Response
        do {
            response = try await next(request, context)
        } catch {
            response = try Self.response(error)
        }
        for (name, value) in Self.fields {
            guard let name = HTTPField.Name(name) else { continue }
            // Content has a stricter policy of its own.
            if response.headers[name] == nil { response.headers[name] = value }
        }
        return response
    }

    private static let fields = [
        (
            "Content-Security-Policy",
            "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
                + "media-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
        ),
        ("X-Content-Type-Options", "nosniff"), ("Referrer-Policy", "no-referrer"), ("X-Frame-Options", "DENY"),
        ("Cross-Origin-Resource-Policy", "same-origin"), ("Cross-Origin-Opener-Policy", "same-origin"),
    ]

    private static func response(_ error: any Error) throws -> Response {
        let (problem, headers) = problem(error)
        var response = Response(
            status: HTTPResponse.Status(code: problem.status),
            headers: [.contentType: "application/problem+json", .cacheControl: "no-store"],
            body: ResponseBody(byteBuffer: ByteBuffer(bytes: try Answer.encode(problem))))
        for field in headers { response.headers.append(field) }
        return response
    }

    private static func problem(_ error: any Error) -> (Wire.Problem, HTTPTypes.HTTPFields) {
        switch error {
        case let error as TowlineError:
            let status = status(error.code)
            return (
                Wire.Problem(
                    title: title(status), status: status, detail: error.message, code: error.code.description), [:]
            )
        case let error as HTTPError:
            return (
                Wire.Problem(title: error.status.reasonPhrase, status: error.status.code, detail: error.body),
                error.headers
            )
        case let error as DecodingError:
            return (Wire.Problem(title: "Bad Request", status: 400, detail: detail(error)), [:])
        default:
            return (Wire.Problem(title: "Internal Server Error", status: 500), [:])
        }
    }

    /// What is wrong with a body. Nothing of the body itself: it may hold a password.
    private static func detail(_ error: DecodingError) -> String {
        func path(_ context: DecodingError.Context) -> String {
            let names = context.codingPath.map { $0.intValue.map(String.init) ?? $0.stringValue }
            return names.isEmpty ? "the body" : names.joined(separator: ".")
        }
        switch error {
        case .keyNotFound(let key, let context): return "\(path(context)) has no member \(key.stringValue)"
        case .typeMismatch(let type, let context): return "\(path(context)) is to be of type \(type)"
        case .valueNotFound(_, let context): return "\(path(context)) is null"
        case .dataCorrupted(let context) where context.debugDescription.hasPrefix("there is no member"):
            return "\(path(context)): \(context.debugDescription)"
        case .dataCorrupted(let context): return "\(path(context)) is no JSON of the kind that is wanted"
        @unknown default: return "the body cannot be read"
        }
    }

    private static func title(_ status: Int) -> String {
        switch status {
        case 400: "Bad Request"
        case 404: "Not Found"
        case 409: "Conflict"
        case 503: "Service Unavailable"
        case 507: "Insufficient Storage"
        default: "Internal Server Error"
        }
    }

    private static func status(_ code: TowlineError.Code) -> Int {
        switch code {
        case .unusableURL, .unusableHeader, .unusableOption, .unusableDestination: 400
        case .unknownDownload: 404
        case .illegalTransition, .destinationExists, .destinationBusy: 409
        case .diskFull: 507
        case .closed, .registryBusy: 503
        default: 500
        }
    }
}
