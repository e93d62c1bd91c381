internal import Foundation
import HTTPTypes
import Hummingbird

/// Reads and writes JSON bodies.
enum Answer {
    /// Returns a response with a value as JSON.
    static func json(_ value: some Encodable, status: HTTPResponse.Status = .ok) throws -> Response {
        Response(
            status: status, headers: [.contentType: "application/json", .cacheControl: "no-store"],
            body: ResponseBody(byteBuffer: ByteBuffer(bytes: try encode(value))))
    }

    /// Returns an empty response (204).
    static func nothing() -> Response { Response(status: .noContent) }

    /// Encodes a value as one line of JSON.
    static func encode(_ value: some Encodable) throws -> Data {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        return try encoder.encode(value)
    }

    /// Maximum size of a request body in bytes.
    static let maximumBody = 1 << 20

    /// Decodes the body of a request.
    ///
    /// - Throws: `HTTPError` 413 if the body is larger than `maximumBody`; `DecodingError`.
    static func read<Value: Decodable>(_ type: Value.Type, from request: Request) async throws -> Value {
        if let length = request.headers[.contentLength].flatMap({ Int64($0) }), length > maximumBody {
            throw tooLarge
        }
        var bytes: [UInt8] = []
        for try await buffer in request.body {
            guard bytes.count + buffer.readableBytes <= maximumBody else {
                throw tooLarge
            }
            bytes.append(contentsOf: buffer.readableBytesView)
        }
        return try JSONDecoder().decode(type, from: Data(bytes))
    }

    private static var tooLarge: HTTPError {
        HTTPError(
            .contentTooLarge,
            message: "the request body is larger than the limit of 1 MiB. Send several smaller requests")
    }
}
