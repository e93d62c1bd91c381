import Synchronization

/// The cookies of a run: those that servers set, and those of the user's cookie file.
///
/// The jar only stores cookies. The transport lends them to a request, and updates the jar after the response. libcurl decides
/// which cookies match a URL and which cookies a server may set (RFC 6265 §5, public suffix list). A cookie is a line of the
/// Netscape format, as written by libcurl.
package final class CookieJar: Sendable {
    private struct Cookie {
        let line: String
        /// The cookie comes from the user's file, and no server has changed it.
        let isStored: Bool
        /// Position in the order of creation: libcurl sends the older of two equally specific cookies first.
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

    /// Creates an empty jar.
    package init() {}

    /// All cookies, oldest first.
    package var lines: [String] { state.withLock { Self.sorted($0.cookies.values) } }

    /// Returns the cookies that can match a host, oldest first.
    ///
    /// - Parameters:
    ///   - stored: true to include the cookies of the user's file.
    ///   - read: reads that file. It is called at most once.
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

    /// Adds the cookies that a response set, and removes those that it deleted.
    ///
    /// - Parameters:
    ///   - lent: the cookies of the request.
    ///   - returned: the cookies after the response.
    package func update(lent: [String], returned: [String]) {
        guard lent != returned else { return }
        let (before, after) = (Set(lent), Set(returned.compactMap(Self.key)))
        state.withLock { state in
            for line in lent {
                // A cookie that another response has set meanwhile stays.
                guard let key = Self.key(line), !after.contains(key), state.cookies[key]?.line == line else { continue }
                state.cookies[key] = nil
            }
            for line in returned where !before.contains(line) { state.add(line, isStored: false) }
        }
    }

    private static func sorted(_ cookies: some Sequence<Cookie>) -> [String] {
        cookies.sorted { $0.number < $1.number }.map(\.line)
    }

    /// Returns the fields that identify a cookie (domain, subdomains, path, name); `nil` if the line is not a cookie.
    private static func key(_ line: String) -> String? {
        let fields = fields(line)
        guard fields.count >= 6 else { return nil }
        return [domain(fields[0]).lowercased(), String(fields[1]), String(fields[2]), String(fields[5])]
            .joined(separator: "\t")
    }

    /// Returns true if the host is the domain of the cookie or a subdomain. libcurl checks the rest.
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
    /// Returns true: requests with different jars may use one connection.
    package static func == (first: CookieJar, second: CookieJar) -> Bool { true }

    /// Adds nothing, because all jars are equal.
    package func hash(into hasher: inout Hasher) {}
}
