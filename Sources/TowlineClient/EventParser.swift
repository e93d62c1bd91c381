import Synchronization

/// An event of the service's event stream.
package struct ServiceEvent: Hashable, Sendable {
    /// The name of the event, such as `changed`; `open` for the connection itself.
    package var name: String
    /// The value of the event in JSON.
    package var data: [UInt8]
}

/// A parser of server-sent events (HTML §9.2.6), for the lines that `towd` sends: one `event` and one `data` line each,
/// which end in a line feed.
final class EventParser: Sendable {
    fileprivate struct State {
        var line: [UInt8] = []
        var name = ""
        var data: [UInt8] = []
        var isOpen = false
    }

    /// The maximum length in bytes of one line. A longer line cannot be an event of `towd`.
    private static let maximumLine = 16 << 20
    private let state = Mutex(State())
    private let body: @Sendable (ServiceEvent) -> Void

    init(_ body: @escaping @Sendable (ServiceEvent) -> Void) { self.body = body }

    /// Parses the next bytes of the stream and passes complete events on. Returns `false` if a line is too long.
    func take(_ bytes: UnsafeRawBufferPointer) -> Bool {
        let events = state.withLock { state -> [ServiceEvent]? in
            var events: [ServiceEvent] = []
            if !state.isOpen { events.append(ServiceEvent(name: "open", data: [])) }
            state.isOpen = true
            var rest = bytes[...]
            while let end = rest.firstIndex(of: 0x0A) {
                state.line += rest[..<end]
                if let event = state.takeLine() { events.append(event) }
                rest = rest[(end + 1)...]
            }
            state.line += rest
            return state.line.count <= Self.maximumLine ? events : nil
        }
        for event in events ?? [] { body(event) }
        return events != nil
    }
}

extension EventParser.State {
    /// Takes a complete line. Returns the event that it ends.
    fileprivate mutating func takeLine() -> ServiceEvent? {
        defer { line = [] }
        guard !line.isEmpty else {
            defer { (name, data) = ("", []) }
            return name.isEmpty ? nil : ServiceEvent(name: name, data: data)
        }
        guard let colon = line.firstIndex(of: 0x3A) else { return nil }
        var value = line[(colon + 1)...]
        if value.first == 0x20 { value.removeFirst() }
        switch String(decoding: line[..<colon], as: UTF8.self) {
        case "event": name = String(decoding: value, as: UTF8.self)
        case "data": data = Array(value)
        default: break
        }
        return nil
    }
}
