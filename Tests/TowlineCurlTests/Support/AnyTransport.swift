import Synchronization
import Testing
import TowlineCore
import TowlineEngine

private let lastID = Atomic<UInt64>(0)

extension AttemptRequest {
    /// Returns a request with a new id. Only this function makes an `HTTPURL` in these tests.
    static func make(
        _ url: String, _ fields: [(String, String)] = [], sendsCredentials: Bool = false,
        connection: ConnectionOptions = .loopback, sharing: ConnectionSharing = .none,
        mayBeSmall: Bool = false
    ) -> AttemptRequest {
        guard let target = try? HTTPURL(parsing: url) else { preconditionFailure("\(url) is no URL") }
        let id = AttemptID(lastID.add(1, ordering: .relaxed).newValue)
        return AttemptRequest(
            id: id, url: target, fields: HTTPFields(fields), sendsCredentials: sendsCredentials,
            sendsStoredCookies: sendsCredentials, connection: connection, sharing: sharing, mayBeSmall: mayBeSmall)
    }
}

extension ConnectionOptions {
    static var loopback: ConnectionOptions { ConnectionOptions() }

    static func with(_ change: (inout ConnectionOptions) -> Void) -> ConnectionOptions {
        var options = ConnectionOptions()
        change(&options)
        return options
    }
}

/// Checks that the attempt kept the port's rules of order.
func expectInOrder(_ receiver: RecordingReceiver, sourceLocation: SourceLocation = #_sourceLocation) {
    #expect(receiver.record.violations == [], sourceLocation: sourceLocation)
}

/// Returns a response with a length.
func response(_ body: String, status: String = "200 OK", fields: String = "") -> String {
    "HTTP/1.1 \(status)\r\n\(fields)Content-Length: \(body.utf8.count)\r\n\r\n\(body)"
}
