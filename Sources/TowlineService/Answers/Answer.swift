internal import Foundation
import HTTPTypes
import Hummingbird

/// JSON in and out.
enum Answer {
    /// An answer with a value.
    static func json(_ value: some Encodable, status: HTTPResponse.Status = .ok) throws -> Response {
        Response(
            status: status, headers: [.contentType: "application/json", .cacheControl: "no-store"],
            body: ResponseBody(byteBuffer: ByteBuffer(bytes: try encode(value))))
    }

    /// An answer without.
    static func nothing() -> Response { Response(status: .noContent) }

    /// One line of JSON.
    static func encode(_ value: some Encodable) throws -> Data {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        return try encoder.encode(value)
    }

    /// More than this is not read of any body.
    static let maximumBody = 1 << 20

    /// What a request's body holds.
    static func read<Value: Decodable>(_ type: Value.Type, from request: Request) async throws -> Value {
        if let length = request.headers[.contentLength].flatMap({ Int64($0) }), length > maximumBody {
            throw HTTPError(.contentTooLarge, message: "a body may have 1 MiB")
        }
        var bytes: [UInt8] = []
        for try await buffer in request.body {
            guard bytes.count + buffer.readableBytes <= maximumBody else {
                throw HTTPError(.contentTooLarge, message: "a body may have 1 MiB")
            }
            bytes.append(contentsOf: buffer.readableBytesView)
        }
        return try JSONDecoder().decode(type, from: Data(bytes))
    }
}
