import Synchronization

/// The cookies of a run: those that servers set, and those of the user's cookie file.
///
/// The jar only stores. The transport lends them to a request and takes back what the response has made of them: libcurl decides
/// which cookie is for which URL, and what a server may set (RFC 6265 §5, public suffixes). Each cookie is a line of the Netscape
/// format as libcurl writes it.
package final class CookieJar: Sendable {
    private struct Cookie {
        let line: String
        /// It is of the user's file, and no server has changed it.
        let isStored: Bool
        /// Of two cookies that are equally specific the older one is sent first.
        let number: Int
    }

    private struct State {
        /// By domain, path and name.
        var cookies: [String: Cookie] = [:]
        var count = 0
        var hasRead = false

        mutating func add(_ line: String, isStored: Bool) {
            guard let key = CookieJar.key(line) else { return }
            count += 1
            let number = cookies[key]?.number ?? count
            cookies[key] = Cookie(line: line, isStored: isStored, number: number)
        }
    }

    private let state = Mutex(State())

    /// Makes an empty one.
    package init() {}

    /// All cookies, the oldest first.
    package var lines: [String] { state.withLock { Self.sorted($0.cookies.values) } }

    /// Returns the cookies that may be for a host, the oldest first.
    ///
    /// - Parameters:
    ///   - stored: whether those of the user's file are among them.
    ///   - read: reads that file; called once in the jar's life.
    package func lines<Failure: Error>(
        for host: String, stored: Bool, read: () throws(Failure) -> [String]
    ) throws(Failure) -> [String] {
        try state.withLock { state throws(Failure) in
            if stored, !state.hasRead {
                for line in try read() { state.add(line, isStored: true) }
                state.hasRead = true
            }
            guard !state.cookies.isEmpty else { return [] }
            let host = host.filter { $0 != "[" && $0 != "]" }
            return Self.sorted(
                state.cookies.values.filter { (stored || !$0.isStored) && Self.mayBeFor(host, $0.line) })
        }
    }

    /// Notes what a response has made of the cookies that were lent to its request.
    package func update(lent: [String], returned: [String]) {
        guard lent != returned else { return }
        let (before, after) = (Set(lent), Set(returned.compactMap(Self.key)))
        state.withLock { state in
            for line in lent {
                // Another response may have set it anew meanwhile.
                guard let key = Self.key(line), !after.contains(key), state.cookies[key]?.line == line else { continue }
                state.cookies[key] = nil
            }
            for line in returned where !before.contains(line) { state.add(line, isStored: false) }
        }
    }

    private static func sorted(_ cookies: some Sequence<Cookie>) -> [String] {
        cookies.sorted { $0.number < $1.number }.map(\.line)
    }

    /// The domain without the mark of `HttpOnly`, whether subdomains are meant, path and name; `nil` for what is no cookie.
    private static func key(_ line: String) -> String? {
        let fields = fields(line)
        guard fields.count >= 6 else { return nil }
        return [domain(fields[0]).lowercased(), String(fields[1]), String(fields[2]), String(fields[5])]
            .joined(separator: "\t")
    }

    /// Whether the host is the cookie's domain or below it, whatever else the cookie says.
    private static func mayBeFor(_ host: String, _ line: String) -> Bool {
        let domain = domain(fields(line)[0]).lowercased()
        return host == domain || host.hasSuffix("." + domain)
    }

    private static func fields(_ line: String) -> [Substring] {
        line.split(separator: "\t", maxSplits: 6, omittingEmptySubsequences: false)
    }

    private static func domain(_ field: Substring) -> Substring {
        let mark = "#HttpOnly_"
        return (field.hasPrefix(mark) ? field.dropFirst(mark.count) : field).drop { $0 == "." }
    }
}

extension CookieJar: Hashable {
    /// Returns true: cookies belong to requests, not to connections, which requests with different jars may share.
    package static func == (first: CookieJar, second: CookieJar) -> Bool { true }

    /// Adds nothing, as all jars are equal.
    package func hash(into hasher: inout Hasher) {}
}
