internal import Foundation
import HTTPTypes
import Hummingbird
import Synchronization
internal import Towline
import TowlineWire

/// Serves the content of downloads, also while they run.
struct ContentRoutes: Sendable {
    let downloader: Downloader
    let roots: DownloadRoots
    /// Maximum time that a request waits for a download to start.
    let patience: Duration

    private static let path = Wire.base + "/downloads/{id}/content"

    func add(to table: inout RouteTable) {
        table.add(.get, Self.path) { request, context in
            let download = try await downloader.require(context.parameters.require("id"))
            let snapshot = try await download.snapshot
            guard roots.hold(snapshot.directory) else {
                throw HTTPError(
                    .forbidden,
                    message: "the content cannot be read because the directory of this file was removed or is outside"
                        + " the downloads directories of towd. Restore the directory, or allow it with --downloads")
            }
            return try await Self.answer(
                request, try await content(download), named: snapshot.name ?? "",
                isStopped: snapshot.isOver || snapshot.state == .paused)
        }
    }

    /// Waits for content for a limited time, because a player times out and requests again.
    private func content(_ download: Download) async throws -> DownloadContent {
        let patience = patience
        return try await withThrowingTaskGroup(of: DownloadContent?.self) { group in
            group.addTask { try await download.content }
            group.addTask {
                try await Task.sleep(for: patience)
                return nil
            }
            defer { group.cancelAll() }
            guard let content = try await group.next() ?? nil else {
                throw HTTPError(
                    .serviceUnavailable, headers: [.retryAfter: "5"],
                    message: "no content yet: the download has not started. Retry later")
            }
            return content
        }
    }

    private static func answer(
        _ request: Request, _ content: DownloadContent, named name: String, isStopped: Bool
    ) async throws -> Response {
        var headers = fields(for: name)
        let tag = content.version.map { "\"" + Self.tag($0) + "\"" }
        headers[.eTag] = tag
        // RFC 9110 §13.2.2: these conditions come before the range and its condition.
        if let response = try unmetCondition(of: request, tag.flatMap { EntityTag(fieldValue: $0) }, headers) {
            return response
        }
        guard let length = content.completeLength else {
            return Response(status: .ok, headers: headers, body: body(content, nil, nil, request))
        }
        headers[.acceptRanges] = "bytes"
        // If the condition fails, send the whole file (RFC 9110 §13.1.5). A weak tag never matches.
        let condition = request.headers[.ifRange]
        let asked = condition == nil || condition == tag ? request.headers[.range] : nil
        switch RangeField(asked, length: length) {
        case .whole:
            if isStopped, length > 0 { try await check(content, at: 0) }
            return Response(status: .ok, headers: headers, body: body(content, 0..<length, length, request))
        case .part(let range):
            if isStopped { try await check(content, at: range.lowerBound) }
            headers[.contentRange] = "bytes \(range.lowerBound)-\(range.upperBound - 1)/\(length)"
            return Response(
                status: .partialContent, headers: headers,
                body: body(content, range, range.upperBound - range.lowerBound, request))
        case .unsatisfiable:
            throw HTTPError(
                .rangeNotSatisfiable, headers: [.contentRange: "bytes */\(length)"],
                message: "the requested range is beyond the end of the file."
                    + " Request a range within its \(length) bytes")
        }
    }

    /// Returns the response 304 if the client has this version of the file, and `nil` if the conditions of the request
    /// are met. Throws 412 if `If-Match` names other versions only.
    private static func unmetCondition(
        of request: Request, _ tag: EntityTag?, _ headers: HTTPFields
    ) throws -> Response? {
        func holds(_ field: String, _ isEqual: (EntityTag) -> Bool) -> Bool {
            field == "*" || EntityTag.list(field).contains(where: isEqual)
        }
        if let field = request.headers[.ifMatch], !holds(field, { tag?.matchesStrongly($0) == true }) {
            throw HTTPError(
                .preconditionFailed,
                message: "the file is not of the version that the header field If-Match names. Request the file without"
                    + " this field")
        }
        guard let field = request.headers[.ifNoneMatch], holds(field, { tag?.matchesWeakly($0) == true }) else {
            return nil
        }
        // A cache replaces the stored fields by these, so the policy of `fields` is sent again (RFC 9111 §3.2).
        return Response(status: .notModified, headers: headers)
    }

    /// Throws `illegalTransition` if a download that does not run does not have the byte at `offset`: a status is
    /// clearer than a response that is cut off.
    private static func check(_ content: DownloadContent, at offset: Int64) async throws {
        var bytes = content.bytes(in: offset..<(offset + 1)).makeAsyncIterator()
        _ = try await bytes.next()
    }

    private static func body(
        _ content: DownloadContent, _ range: Range<Int64>?, _ length: Int64?, _ request: Request
    ) -> ResponseBody {
        ResponseBody(contentLength: length.map { Int($0) }) { writer in
            let leaving = Leaving()
            try await request.body.consumeWithInboundCloseHandler(
                { _ in
                    let iterator = content.bytes(in: range).makeAsyncIterator()
                    while true {
                        // Detect a closed connection while waiting for bytes, not only when writing.
                        let piece = Task { () -> Data? in
                            var iterator = iterator
                            return try await iterator.next()
                        }
                        leaving.follow(piece)
                        guard let data = try await piece.value else { break }
                        try await writer.write(ByteBuffer(bytes: data))
                    }
                }, onInboundClosed: { leaving.leave() })
            try await writer.finish(nil)
        }
    }

    /// Cancels the reading task when the client disconnects.
    private final class Leaving: Sendable {
        /// The task that reads for the client, and whether the client has disconnected.
        private struct ClientReading {
            var isGone = false
            var reading: Task<Data?, any Error>?
        }
        private let state = Mutex(ClientReading())

        func follow(_ task: Task<Data?, any Error>) {
            let isGone = state.withLock { state in
                state.reading = task
                return state.isGone
            }
            if isGone { task.cancel() }
        }

        func leave() {
            let task = state.withLock { state in
                state.isGone = true
                return state.reading
            }
            task?.cancel()
        }
    }

    /// Hashes the version, which is the server's text, into a valid ETag (FNV-1a, 128 bits in two halves).
    private static func tag(_ version: String) -> String {
        func hash(_ seed: UInt64) -> UInt64 { version.utf8.reduce(seed) { ($0 ^ UInt64($1)) &* 0x100_0000_01B3 } }
        return String(hash(0xCBF2_9CE4_8422_2325), radix: 16) + String(hash(0x9E37_79B9_7F4A_7C15), radix: 16)
    }

    /// Header fields for a browser. A downloaded page must never run as a page of this service: only images, audio,
    /// video and plain text are shown inline, always in a sandbox (CSP 3, §6.3.2 `sandbox`).
    private static func fields(for name: String) -> HTTPFields {
        let ending = name.split(separator: ".").last?.lowercased() ?? ""
        let type = shown[ending]
        let words = SafeFileName.make(name) ?? ""
        let escaped = words.addingPercentEncoding(withAllowedCharacters: .alphanumerics) ?? "download"
        return [
            .contentType: type ?? "application/octet-stream", .cacheControl: "private, no-cache",
            .contentDisposition: (type == nil ? "attachment" : "inline") + "; filename*=UTF-8''" + escaped,
            .contentSecurityPolicy:
                "sandbox; default-src 'none'; img-src 'self'; media-src 'self'; style-src 'unsafe-inline'",
        ]
    }

    private static let shown = [
        "mp4": "video/mp4", "m4v": "video/mp4", "mkv": "video/x-matroska", "webm": "video/webm",
        "mov": "video/quicktime",
        "ogv": "video/ogg", "ts": "video/mp2t", "avi": "video/x-msvideo", "mp3": "audio/mpeg", "m4a": "audio/mp4",
        "aac": "audio/aac", "flac": "audio/flac", "ogg": "audio/ogg", "oga": "audio/ogg", "opus": "audio/ogg",
        "wav": "audio/wav", "png": "image/png", "jpg": "image/jpeg", "jpeg": "image/jpeg", "gif": "image/gif",
        "webp": "image/webp", "avif": "image/avif", "txt": "text/plain; charset=utf-8",
        "log": "text/plain; charset=utf-8",
    ]
}
