import FoundationEssentials
package import TowlineCore
import TowlineCurl
package import TowlineWire

/// A client that sends requests to `towd` over its Unix socket.
package struct ServiceClient: Sendable {
    /// The path of the socket of `towd`.
    package let socket: String
    /// The name of the program that uses this client, for messages about different versions.
    private let program: String
    private let exchange: SocketExchange
    private let onSilence: (@Sendable () -> Void)?

    /// Creates a client. Does not connect.
    ///
    /// - Parameters:
    ///   - timeout: the limit for a whole request and its response.
    ///   - program: the program that uses the client, as messages name it.
    ///   - onSilence: called once for each request during which `towd` does not respond to any request for 5 seconds.
    ///     The event stream does not call it.
    package init(
        socket: String, timeout: Duration = .seconds(60), program: String = "tow",
        onSilence: (@Sendable () -> Void)? = nil
    ) {
        self.socket = socket
        self.program = program
        self.onSilence = onSilence
        exchange = SocketExchange(socket: socket, timeout: timeout)
    }

    /// An error: no process listens on the socket.
    package struct NotRunning: Error {}

    /// Returns whether `towd` responds within 3 seconds. A stopped process (SIGSTOP) accepts connections without ever
    /// responding.
    package var isRunning: Bool {
        get async {
            let client = Self(socket: socket, timeout: .seconds(3), program: program)
            return (try? await client.send("GET", "/health")) != nil
        }
    }

    // MARK: The list

    /// Adds downloads: either all of them or none.
    package func add(_ downloads: [Wire.NewDownload]) async throws -> [Wire.Download] {
        let body = try Self.encode(Wire.NewDownloads(downloads))
        return try decode(Wire.Added.self, try await send("POST", "/downloads", body)).downloads
    }

    /// Returns the download with the URL and the destination of a request; `nil` if the list does not contain it.
    package func find(_ download: Wire.NewDownload) async throws -> Wire.Download? {
        let body = try Self.encode(download)
        return try decode(Wire.Added.self, try await send("POST", "/actions/find", body)).downloads.first
    }

    /// Returns one page of the list for the parameters of a query.
    package func page(_ query: [(String, String)]) async throws -> Wire.Page {
        try decode(Wire.Page.self, try await send("GET", "/downloads" + Self.query(query)))
    }

    /// The totals of the list.
    package var totals: Wire.Totals {
        get async throws { try decode(Wire.Totals.self, try await send("GET", "/totals")) }
    }

    /// Carries out an action for all downloads, or for those of a group: `pause-all` or `resume-all`.
    package func actOnAll(_ action: String, group: String?) async throws {
        _ = try await send("POST", "/actions/" + action + Self.query(group.map { [("group", $0)] } ?? []), [])
    }

    // MARK: One download

    /// Returns a download.
    package func download(_ id: String) async throws -> Wire.Download {
        try decode(Wire.Download.self, try await send("GET", Self.path(id)))
    }

    /// Returns entries of a timeline with a number greater than `number`, oldest first.
    package func timeline(_ id: String, after number: Int64 = 0, limit: Int = 10_000) async throws -> [Wire.Note] {
        let target = try Self.path(id) + "/timeline?after=\(number)&limit=\(limit)"
        return try decode(Wire.Timeline.self, try await send("GET", target)).notes
    }

    /// Returns the downloaded byte ranges and the active attempts of a download.
    package func segments(_ id: String) async throws -> Wire.Segments {
        try decode(Wire.Segments.self, try await send("GET", Self.path(id) + "/segments"))
    }

    /// Carries out an action for a download, such as `pause`, and returns the download.
    package func act(_ action: String, on id: String) async throws -> Wire.Download {
        try decode(Wire.Download.self, try await send("POST", Self.path(id) + "/actions/" + action, []))
    }

    /// Removes a download from the list, with or without its files.
    package func remove(_ id: String, deletingFiles: Bool) async throws {
        _ = try await send("DELETE", Self.path(id) + "?files=\(deletingFiles)")
    }

    /// Changes a download and returns it.
    package func change(_ id: String, _ change: Wire.Change) async throws -> Wire.Download {
        try decode(Wire.Download.self, try await send("PATCH", Self.path(id), try Self.encode(change)))
    }

    // MARK: The service

    /// The settings of the service.
    package var settings: Wire.Settings {
        get async throws { try decode(Wire.Settings.self, try await send("GET", "/settings")) }
    }

    /// Changes the settings of the service and returns them.
    package func change(_ change: Wire.SettingsChange) async throws -> Wire.Settings {
        try decode(Wire.Settings.self, try await send("PATCH", "/settings", try Self.encode(change)))
    }

    /// Creates the code of a sign-in link to the web page.
    package func makeSignInCode() async throws -> Wire.SignInCode {
        try decode(Wire.SignInCode.self, try await send("POST", "/session/codes", []))
    }

    /// Reads the event stream of the service and passes its events to `body`, on a thread of the stream, until the
    /// service closes the stream or the task is cancelled. The first event, `open`, says that the stream is connected.
    ///
    /// A stream that is silent for 45 seconds has failed: `towd` sends a sign of life every 15 seconds.
    package func events(_ body: @escaping @Sendable (ServiceEvent) -> Void) async throws {
        let parser = EventParser(body)
        let request = SocketExchange.Request("GET", Wire.base + "/events")
        let status = try await reporting { () throws(SocketExchange.Failure) in
            try await exchange.stream(request, silence: .seconds(45)) { parser.take($0) }
        }
        guard status == 200 else { throw unreadable(status) }
    }

    // MARK: Exchanges

    private func send(_ method: String, _ target: String, _ body: [UInt8]? = nil) async throws -> [UInt8] {
        let watch = onSilence.map { report in
            Task {
                // A request may take long, for example while many downloads are added.
                try await Task.sleep(for: .seconds(2))
                if await !isRunning, !Task.isCancelled { report() }
            }
        }
        defer { watch?.cancel() }
        let answer = try await reporting { () throws(SocketExchange.Failure) in
            try await exchange.send(.init(method, Wire.base + target, body: body))
        }
        guard (200..<300).contains(answer.status) else { throw refusal(answer) }
        return answer.body
    }

    /// Calls `body` and turns a failure to reach the service into an error for users.
    private func reporting<Value: Sendable>(
        _ body: () async throws(SocketExchange.Failure) -> Value
    ) async throws -> Value {
        do throws(SocketExchange.Failure) {
            return try await body()
        } catch {
            switch error {
            case .nobodyListens: throw NotRunning()
            case .foreignOwner(let owner):
                throw TowlineError(
                    .commandFailed,
                    "\(TerminalSafeText.make(socket)): the socket belongs to another user (user ID \(owner)), so nothing "
                        + "was sent. Run \(program) as that user, or name your own service with its socket or state "
                        + "directory")
            case .other(let reason):
                throw TowlineError(
                    .transient, "no response from towd: \(reason). 'tow service status' shows whether towd is running")
            }
        }
    }

    private func refusal(_ answer: SocketExchange.Answer) -> TowlineError {
        guard let problem = try? JSONDecoder().decode(Wire.Problem.self, from: Data(answer.body)) else {
            return unreadable(answer.status)
        }
        // Without a code, the path or the method is unknown to this towd.
        guard problem.code != nil || ![404, 405].contains(answer.status) else { return unreadable(answer.status) }
        let code = problem.code.flatMap { TowlineError.Code(name: $0) } ?? .unusableOption
        var error = TowlineError(code, problem.detail ?? problem.title)
        error.fields = problem.fields ?? []
        return error
    }

    private func unreadable(_ status: Int) -> TowlineError {
        TowlineError(
            .invalidResponse,
            "cannot read towd's response (HTTP status \(status)). Check that \(program) and towd have the same version")
    }

    private func decode<Value: Decodable>(_ type: Value.Type, _ bytes: [UInt8]) throws -> Value {
        try Self.decode(type, bytes, program: program)
    }

    /// Decodes a value that `towd` sent. Throws `invalidResponse` if the value is of another version.
    package static func decode<Value: Decodable>(
        _ type: Value.Type, _ bytes: [UInt8], program: String
    ) throws(TowlineError) -> Value {
        do { return try JSONDecoder().decode(type, from: Data(bytes)) } catch {
            throw TowlineError(
                .invalidResponse, "cannot read towd's response. Check that \(program) and towd have the same version")
        }
    }

    /// Returns the path of a download. An empty component and dots would name another path (RFC 3986 §5.2.4).
    private static func path(_ id: String) throws(TowlineError) -> String {
        guard id.contains(where: { $0 != "." }) else {
            throw TowlineError(
                .unusableOption, "'\(id)' is neither the ID nor the name of a download. 'tow list' shows the IDs")
        }
        return "/downloads/" + escaped(id)
    }

    private static func query(_ items: [(String, String)]) -> String {
        items.isEmpty ? "" : "?" + items.map { $0 + "=" + escaped($1) }.joined(separator: "&")
    }

    /// Encodes a value as JSON for `towd`.
    package static func encode(_ value: some Encodable) throws -> [UInt8] {
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
