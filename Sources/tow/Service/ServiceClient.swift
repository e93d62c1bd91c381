import FoundationEssentials
import TowlineCore
import TowlineCurl
import TowlineWire

/// A client that sends requests to `towd`.
struct ServiceClient: Sendable {
    /// The path of the socket of `towd`.
    let socket: String
    private let exchange: SocketExchange

    /// - Parameter timeout: the limit for a whole request and its response.
    init(socket: String, timeout: Duration = .seconds(60)) {
        self.socket = socket
        exchange = SocketExchange(socket: socket, timeout: timeout)
    }

    /// An error: no process listens on the socket.
    struct NotRunning: Error {}

    var isRunning: Bool {
        get async { (try? await send("GET", "/health")) != nil }
    }

    func add(_ downloads: [Wire.NewDownload]) async throws -> [Wire.Download] {
        let body = try Self.encode(Wire.NewDownloads(downloads))
        return try decode(Wire.Added.self, try await send("POST", "/downloads", body)).downloads
    }

    func page(_ query: [(String, String)]) async throws -> Wire.Page {
        let text = query.map { $0 + "=" + Self.escaped($1) }.joined(separator: "&")
        return try decode(Wire.Page.self, try await send("GET", "/downloads?" + text))
    }

    func download(_ id: String) async throws -> Wire.Download {
        try decode(Wire.Download.self, try await send("GET", "/downloads/" + Self.escaped(id)))
    }

    func timeline(_ id: String) async throws -> [Wire.Note] {
        let target = "/downloads/" + Self.escaped(id) + "/timeline?limit=10000"
        return try decode(Wire.Timeline.self, try await send("GET", target)).notes
    }

    func act(_ action: String, on id: String) async throws -> Wire.Download {
        let target = "/downloads/" + Self.escaped(id) + "/actions/" + action
        return try decode(Wire.Download.self, try await send("POST", target, []))
    }

    func remove(_ id: String, deletingFiles: Bool) async throws {
        _ = try await send("DELETE", "/downloads/" + Self.escaped(id) + "?files=\(deletingFiles)")
    }

    func change(_ id: String, _ change: Wire.Change) async throws -> Wire.Download {
        let target = "/downloads/" + Self.escaped(id)
        return try decode(Wire.Download.self, try await send("PATCH", target, try Self.encode(change)))
    }

    var settings: Wire.Settings {
        get async throws { try decode(Wire.Settings.self, try await send("GET", "/settings")) }
    }

    func change(_ change: Wire.SettingsChange) async throws -> Wire.Settings {
        try decode(Wire.Settings.self, try await send("PATCH", "/settings", try Self.encode(change)))
    }

    // MARK: Exchanges

    private func send(_ method: String, _ target: String, _ body: [UInt8]? = nil) async throws -> [UInt8] {
        let answer: SocketExchange.Answer
        do throws(SocketExchange.Failure) {
            answer = try await exchange.send(.init(method, Wire.base + target, body: body))
        } catch {
            switch error {
            case .nobodyListens: throw NotRunning()
            case .foreignOwner(let owner):
                throw TowlineError(
                    .commandFailed,
                    "\(TerminalSafeText.make(socket)): the socket belongs to another user (user ID \(owner)), so nothing "
                        + "was sent. Run tow as that user, or name your own service with --socket or --state")
            case .other(let reason):
                throw TowlineError(
                    .transient, "no response from towd: \(reason). 'tow service status' shows whether towd is running")
            }
        }
        guard (200..<300).contains(answer.status) else { throw Self.refusal(answer) }
        return answer.body
    }

    private static func refusal(_ answer: SocketExchange.Answer) -> TowlineError {
        guard let problem = try? JSONDecoder().decode(Wire.Problem.self, from: Data(answer.body)) else {
            return TowlineError(
                .invalidResponse,
                """
                cannot read towd's response (HTTP status \(answer.status)). Check that tow and towd have the same \
                version
                """)
        }
        let code = problem.code.flatMap { TowlineError.Code(name: $0) } ?? .unusableOption
        return TowlineError(code, problem.detail ?? problem.title)
    }

    private func decode<Value: Decodable>(_ type: Value.Type, _ bytes: [UInt8]) throws -> Value {
        do { return try JSONDecoder().decode(type, from: Data(bytes)) } catch {
            throw TowlineError(
                .invalidResponse, "cannot read towd's response. Check that tow and towd have the same version")
        }
    }

    static func encode(_ value: some Encodable) throws -> [UInt8] {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        return Array(try encoder.encode(value))
    }

    /// Percent-encodes all characters except the unreserved ones (RFC 3986 §2.1).
    static func escaped(_ text: String) -> String {
        var result = ""
        for byte in text.utf8 {
            let scalar = Unicode.Scalar(byte)
            if scalar.isASCII, scalar.properties.isAlphabetic || "0123456789-._~".unicodeScalars.contains(scalar) {
                result.unicodeScalars.append(scalar)
            } else {
                result += "%" + Hexadecimal.encoded([byte]).uppercased()
            }
        }
        return result
    }
}
