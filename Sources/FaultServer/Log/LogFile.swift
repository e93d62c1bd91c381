import Glibc

/// The log as JSON lines in a file, one object for each event, written as it happens: `connection`,
/// `request`, `end` (with the status and body bytes of the request) and `closed`. Each line is one `write`
/// to a descriptor opened for appending, so that a reader sees whole lines. Times are seconds since the start.
package struct LogFile: Sendable {
    private let descriptor: CInt

    /// Opens the file for appending, and creates it if needed; `nil` if that fails (see `errno`).
    package init?(path: String) {
        descriptor = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o644)
        guard descriptor >= 0 else { return nil }
    }

    func connection(_ connection: Records.Connection) {
        put("{\"event\":\"connection\",\"connection\":\(connection.number),\"time\":\(seconds(connection.accepted))}")
    }

    func closed(_ connection: Records.Connection) {
        let time = seconds(connection.closed ?? .zero)
        put("{\"event\":\"closed\",\"connection\":\(connection.number),\"time\":\(time)}")
    }

    func request(_ request: Records.Request) {
        let info = request.info
        let fields = info.fields.map { "[\(quoted($0.0)),\(quoted($0.1))]" }.joined(separator: ",")
        put(
            "{\"event\":\"request\",\"request\":\(request.number),\"connection\":\(info.connection),"
                + "\"index\":\(info.index),\"method\":\(quoted(info.method)),\"target\":\(quoted(info.target)),"
                + "\"fields\":[\(fields)],\"time\":\(seconds(request.time))}")
    }

    func ended(_ request: Records.Request) {
        let status = request.status.map(String.init) ?? "null"
        put(
            "{\"event\":\"end\",\"request\":\(request.number),\"path\":\(quoted(request.path)),\"status\":\(status),"
                + "\"bodyBytes\":\(request.bodyBytes),\"time\":\(seconds(request.ended ?? .zero))}")
    }

    private func put(_ line: String) {
        let bytes = Array((line + "\n").utf8)
        // The log is for tests: a test detects a missing line, so a failed write needs no handling here.
        _ = bytes.withUnsafeBytes { write(descriptor, $0.baseAddress, $0.count) }
    }

    private func seconds(_ duration: Duration) -> Double {
        Double(duration.components.seconds) + Double(duration.components.attoseconds) / 1e18
    }

    private func quoted(_ text: String) -> String {
        var result = "\""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\"": result += "\\\""
            case "\\": result += "\\\\"
            case _ where scalar.value < 0x20 || scalar.value == 0x7F:
                let digits = String(scalar.value, radix: 16)
                result += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
            default: result.unicodeScalars.append(scalar)
            }
        }
        return result + "\""
    }
}
