internal import Foundation
import HTTPTypes
import Hummingbird
import NIOHTTP1
internal import Towline
import TowlineWire

/// Turns errors into problem details (RFC 9457). Adds the header fields to every response that protect it from pages of
/// other sites.
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
            // The content routes set a stricter policy.
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
                    title: title(status), status: status, detail: error.message, code: error.code.description,
                    fields: error.fields.isEmpty ? nil : error.fields), [:]
            )
        case let error as HTTPError:
            return (
                Wire.Problem(title: error.status.reasonPhrase, status: error.status.code, detail: error.body),
                error.headers
            )
        case let error as DecodingError:
            return (Wire.Problem(title: "Bad Request", status: 400, detail: detail(error)), [:])
        case is HTTPParserError:
            return (
                Wire.Problem(
                    title: "Bad Request", status: 400, detail: "the framing of the request body is invalid"),
                [.connection: "close"]
            )
        default:
            return (Wire.Problem(title: "Internal Server Error", status: 500), [:])
        }
    }

    /// Describes why a request body is invalid. Never quotes a value of the body, because it may be a password.
    static func detail(_ error: DecodingError) -> String {
        func path(_ context: DecodingError.Context) -> String {
            let names = context.codingPath.map { $0.intValue.map(String.init) ?? $0.stringValue }
            return names.isEmpty ? "the request body" : names.joined(separator: ".")
        }
        switch error {
        case .keyNotFound(let key, let context):
            return "\(path(context)): the required field '\(key.stringValue)' is missing"
        case .typeMismatch(let type, let context): return "\(path(context)): wrong type, expected \(jsonName(type))"
        case .valueNotFound(_, let context): return "\(path(context)): null is not allowed here"
        case .dataCorrupted(let context) where context.debugDescription.hasPrefix("unknown field"):
            return "\(path(context)): \(context.debugDescription)"
        case .dataCorrupted(let context): return "\(path(context)): invalid JSON, or a value that is out of range"
        @unknown default: return "the request body is not JSON of the expected form"
        }
    }

    /// The JSON name of a Swift type.
    private static func jsonName(_ type: Any.Type) -> String {
        switch "\(type)" {
        case "Int", "Int64": "an integer"
        case "Double": "a number"
        case "String": "a string"
        case "Bool": "true or false"
        case let name where name.hasPrefix("Array"): "an array"
        case let name where name.hasPrefix("Dictionary"): "an object"
        case let name: name
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
        case .illegalTransition, .destinationExists, .destinationBusy, .optionConflict, .checksumMismatch: 409
        case .diskFull: 507
        case .closed, .registryBusy: 503
        default: 500
        }
    }
}
