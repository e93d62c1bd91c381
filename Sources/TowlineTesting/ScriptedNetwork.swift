public import Foundation
import Synchronization
import Towline
import TowlineCore
import TowlineEngine

/// A network in memory, for tests of an app that downloads: the app's own code runs with the real library, and no
/// socket is opened.
///
/// ```swift
/// let network = ScriptedNetwork()
/// network["https://example.org/film.mp4"] = .init(data, bytesPerSecond: 50_000)
/// let downloader = try await Downloader(stateDirectory: folder, transport: network.transport)
/// ```
///
/// The servers support ranges and `If-Range` (RFC 9110 §14.2, §13.1.5) with the entity tag of a resource. All calls are
/// safe from any thread.
public final class ScriptedNetwork: Sendable {
    /// A file that the network serves under one URL.
    public struct Resource: Hashable, Sendable {
        /// The bytes of the file.
        public var data: Data
        /// The status of responses. Statuses other than 200 are sent without the file.
        public var status = 200
        /// The entity tag, in quotes; `nil` sends none. Another version of a file needs another tag.
        public var entityTag: String?
        /// A Boolean value that indicates whether parts of the file can be requested.
        public var supportsRanges = true
        /// The rate of each connection; `nil` delivers the file at once.
        public var bytesPerSecond: Int?
        /// Further header fields of responses, such as `Retry-After`.
        public var fields: [String: String] = [:]

        /// Creates a file with an entity tag.
        public init(_ data: Data, entityTag: String? = "\"1\"", bytesPerSecond: Int? = nil) {
            (self.data, self.entityTag, self.bytesPerSecond) = (data, entityTag, bytesPerSecond)
        }

        /// Creates a response without a file, for example 404 or 503.
        public init(status: Int) {
            data = Data()
            self.status = status
        }
    }

    /// A request that the network received.
    public struct Request: Hashable, Sendable {
        /// The requested URL.
        public let url: String
        /// The value of the field `Range`, such as `bytes=0-`; `nil` without one.
        public let range: String?
    }

    private struct Contents {
        var resources: [String: Resource] = [:]
        var requests: [Request] = []
        var isConnected = true
        /// The monitors of the downloaders that use the network.
        var monitors: [ScriptedMonitor] = []
    }

    private let contents = Mutex(Contents())
    private let connections: ScriptedConnections
    /// The clock of the network and of the downloaders that use it.
    public let clock = ScriptedClock()

    /// Creates a network without servers: every URL responds with status 404.
    public init() { connections = ScriptedConnections(clock) }

    /// The file at a URL; `nil` for none. A change applies to later requests.
    public subscript(url: String) -> Resource? {
        get { contents.withLock { $0.resources[Self.key(url)] } }
        set { contents.withLock { $0.resources[Self.key(url)] = newValue } }
    }

    /// Returns the form of a URL in which requests name it.
    private static func key(_ url: String) -> String { (try? HTTPURL(parsing: url).requestText) ?? url }

    /// The requests so far, in order.
    public var requests: [Request] { contents.withLock { $0.requests } }

    /// A Boolean value that indicates whether servers can be reached, which is also the state of
    /// ``Downloader/network``.
    ///
    /// Setting it to `false` breaks all connections, and downloads wait for the network. Setting it to `true` ends
    /// these waits at once, as on a machine that is connected again.
    public var isConnected: Bool {
        get { contents.withLock { $0.isConnected } }
        set {
            let monitors = contents.withLock { contents in
                contents.isConnected = newValue
                return contents.monitors
            }
            for monitor in monitors { monitor.set(newValue ? .available : .unavailable) }
            if !newValue { breakConnections() }
        }
    }

    /// Breaks all connections that are delivering a response, as a restarted router does.
    public func breakConnections() { connections.breakAll() }

    /// The transport for ``Downloader``. Several downloaders may use one network.
    public var transport: DownloadTransport {
        DownloadTransport(monitor: { self.makeMonitor() }, clock: clock) { ScriptedTransport(network: self) }
    }

    private func makeMonitor() -> ScriptedMonitor {
        contents.withLock { contents in
            let monitor = ScriptedMonitor(contents.isConnected ? .available : .unavailable)
            contents.monitors.append(monitor)
            return monitor
        }
    }

    /// Records a request and opens its connection.
    func start(_ request: AttemptRequest, receiver: any AttemptReceiver, ended: @escaping @Sendable () -> Void) {
        let url = request.url.requestText
        let range = request.fields.firstValue(named: "Range")
        let resource = contents.withLock { contents -> Resource? in
            contents.requests.append(Request(url: url, range: range))
            return contents.isConnected ? contents.resources[url] ?? Resource(status: 404) : nil
        }
        let condition = request.fields.firstValue(named: "If-Range")
        connections.open(
            request.id, receiver, resource.map { ScriptedReply($0, range: range, condition: condition) },
            resource?.bytesPerSecond.map { max(1, $0) }, ended)
        if !isConnected { connections.breakOff(request.id) }
    }

    func cancel(_ id: AttemptID) { connections.cancel(id) }

    func proceed(_ id: AttemptID) { connections.proceed(id) }
}

/// The response to one request: a head and the bytes of its body.
struct ScriptedReply {
    let head: ResponseHead
    let body: Data

    /// - Parameters:
    ///   - range: the value of the field `Range`.
    ///   - condition: the value of the field `If-Range`.
    init(_ resource: ScriptedNetwork.Resource, range: String?, condition: String?) {
        var fields = HTTPFields(resource.fields.map { ($0.key, $0.value) })
        if let tag = resource.entityTag { fields.append(name: "ETag", value: tag) }
        let length = resource.status == 200 ? resource.data.count : 0
        var (status, part) = (resource.status, 0..<length)
        if status == 200, resource.supportsRanges {
            fields.append(name: "Accept-Ranges", value: "bytes")
            if condition == nil || condition == resource.entityTag, let asked = range.flatMap(Self.bounds) {
                if asked.first < length {
                    part = asked.first..<min(length, (asked.last ?? .max - 1) + 1)
                    status = 206
                    let text = "bytes \(part.lowerBound)-\(part.upperBound - 1)/\(length)"
                    fields.append(name: "Content-Range", value: text)
                } else {
                    (status, part) = (416, 0..<0)
                    fields.append(name: "Content-Range", value: "bytes */\(length)")
                }
            }
        }
        fields.append(name: "Content-Length", value: "\(part.count)")
        head = ResponseHead(status: status, fields: fields)
        body = resource.data.dropFirst(part.lowerBound).prefix(part.count)
    }

    /// Parses `bytes=FIRST-` or `bytes=FIRST-LAST`.
    private static func bounds(_ range: String) -> (first: Int, last: Int?)? {
        guard range.hasPrefix("bytes=") else { return nil }
        let numbers = range.dropFirst(6).split(separator: "-", omittingEmptySubsequences: false)
        guard numbers.count == 2, let first = Int(numbers[0]) else { return nil }
        return (first, Int(numbers[1]))
    }
}
