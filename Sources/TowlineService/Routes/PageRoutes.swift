import CPage
import HTTPTypes
import Hummingbird
import TowlineWire

/// Serves the web page and the OpenAPI document, which are embedded in the binary.
struct PageRoutes: Sendable {
    struct File: Sendable {
        let name: String
        let buffer: ByteBuffer

        /// Media type, derived from the file name.
        var mediaType: String {
            switch name.split(separator: ".").last {
            case "html": "text/html; charset=utf-8"
            case "css": "text/css; charset=utf-8"
            case "js", "mjs": "text/javascript; charset=utf-8"
            case "json", "webmanifest": "application/json"
            case "svg": "image/svg+xml"
            case "png": "image/png"
            case "ico": "image/x-icon"
            case "woff2": "font/woff2"
            case "txt": "text/plain; charset=utf-8"
            default: "application/octet-stream"
            }
        }
    }

    static let files: [File] = {
        var files: [File] = []
        while let file = cpage_file_at(files.count) {
            let bytes = UnsafeBufferPointer(start: file.pointee.bytes, count: file.pointee.count)
            files.append(File(name: String(cString: file.pointee.name), buffer: ByteBuffer(bytes: bytes)))
        }
        return files
    }()

    func add(to table: inout RouteTable) {
        let document = cpage_api_document()
        let buffer = ByteBuffer(bytes: UnsafeBufferPointer(start: document.bytes, count: document.count))
        table.add(.get, Wire.base + "/openapi.json") { _, _ in
            Response(
                status: .ok, headers: [.contentType: "application/json"], body: ResponseBody(byteBuffer: buffer))
        }
        for file in Self.files {
            let path = file.name == "index.html" ? "/" : "/page/" + file.name
            let headers: HTTPFields = [.contentType: file.mediaType, .cacheControl: "no-cache"]
            table.add(.get, path) { _, _ in
                Response(status: .ok, headers: headers, body: ResponseBody(byteBuffer: file.buffer))
            }
        }
    }
}
