internal import Foundation
import HTTPTypes
import Hummingbird

/// Reads and writes JSON bodies.
enum Answer {
    static func json(_ value: some Encodable, status: HTTPResponse.Status = .ok) throws -> Response {
        Response(
            status: status, headers: [.contentType: "application/json", .cacheControl: "no-store"],
            body: ResponseBody(byteBuffer: ByteBuffer(bytes: try encode(value))))
    }

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
    /// - Parameters:
    ///   - limit: the maximum size of the body in bytes.
    ///   - mayBeEmpty: `true` to read an empty body as an empty JSON object.
    /// - Throws: `HTTPError` 413 if the body is larger than `limit`, 503 if all bodies that are being received together
    ///   are larger than the budget; `DecodingError`.
    static func read<Value: Decodable>(
        _ type: Value.Type, from request: Request, limit: Int = maximumBody, mayBeEmpty: Bool = false
    ) async throws -> Value {
        if let length = request.headers[.contentLength].flatMap({ Int64($0) }), length > limit {
            throw tooLarge(limit)
        }
        var bytes: [UInt8] = []
        var taken = 0
        defer { BodyBudget.shared.giveBack(taken) }
        for try await buffer in request.body {
            let count = buffer.readableBytes
            guard bytes.count + count <= limit else { throw tooLarge(limit) }
            guard BodyBudget.shared.take(count) else { throw busy }
            taken += count
            bytes.append(contentsOf: buffer.readableBytesView)
        }
        if bytes.isEmpty, mayBeEmpty { bytes = Array("{}".utf8) }
        return try JSONDecoder().decode(type, from: Data(bytes))
    }

    private static func tooLarge(_ limit: Int) -> HTTPError {
        HTTPError(
            .contentTooLarge,
            message: "the request body is larger than the limit of \(limit >> 10) KiB. Send several smaller requests")
    }

    private static var busy: HTTPError {
        HTTPError(
            .serviceUnavailable, headers: [.retryAfter: "1"],
            message: "towd is receiving too many large requests at the same time. Send the request again in a second")
    }
}
