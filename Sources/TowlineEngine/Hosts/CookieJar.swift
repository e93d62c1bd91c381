import Synchronization
package import TowlineCore

/// A store of the cookies that servers set during the life of a process, and of those in the user's cookie file. The
/// transport copies them into a request, and updates the jar after the response. libcurl decides which cookies match a
/// URL and which cookies a server may set. A cookie is a line of the Netscape format, as written by libcurl.
package final class CookieJar: Sendable {
    /// A stored cookie: its line in the Netscape format, and the properties that decide which requests may carry it.
    private struct Cookie {
        let line: String
        /// `true` if the cookie was read from the user's file and no server has changed it since.
        let isStored: Bool
        /// `true` if the cookie may be sent over https only.
        let isSecure: Bool
        /// The position of the cookie in the order of creation. Of two equally specific cookies, libcurl sends the
        /// older one first.
        let number: Int
    }

    /// The fields that identify a cookie: a new cookie with an equal key replaces the old one.
    private struct Key: Hashable {
        let domain: String
        /// The fields that identify a cookie in addition to its domain: the flag for subdomains, the path and the name.
        let rest: String
    }

    /// The stored cookies and the number of cookies created so far, and whether the cookies of the user's file were
    /// added.
    private struct Contents {
        /// The cookies by domain, for fast access: a browser's file has thousands of cookies, and each request needs
        /// only the cookies of its host.
        var domains: [String: [Key: Cookie]] = [:]
        /// The number of cookies created so far: the `number` of the last one.
        var count = 0
        /// `true` after the cookies of the user's file were added, so that the file is read only once.
        var hasRead = false

        subscript(key: Key) -> Cookie? {
            get { domains[key.domain]?[key] }
            set { domains[key.domain, default: [:]][key] = newValue }
        }

        /// Returns the cookies of a host and of its parent domains.
        func cookies(of host: String) -> [Cookie] {
            var found: [Cookie] = []
            var domain = host.filter { $0 != "[" && $0 != "]" }[...]
            while true {
                if let cookies = domains[String(domain)] { found += cookies.values }
                guard let dot = domain.firstIndex(of: ".") else { return found }
                domain = domain[domain.index(after: dot)...]
            }
        }

        mutating func add(_ line: String, isStored: Bool) {
            guard let key = CookieJar.key(line) else { return }
            count += 1
            self[key] = Cookie(
                line: line, isStored: isStored, isSecure: CookieJar.isSecure(line), number: self[key]?.number ?? count)
        }
    }

    private let state = Mutex(Contents())

    /// Creates an empty store of cookies.
    package init() {}

    /// Creates a store with the content of a cookie file: the user's cookies in the Netscape format.
    ///
    /// - Throws: `unusableOption` for a line that is neither a cookie nor a comment. The error message contains the
    ///   number of the line only, because its content is secret.
    package init(netscape text: String) throws(TowlineError) {
        let lines = text.split(omittingEmptySubsequences: false) { $0 == "\n" || $0 == "\r\n" }
        for (index, line) in lines.enumerated() where !line.allSatisfy({ $0 == " " }) {
            guard !line.hasPrefix("#") || line.hasPrefix(Self.httpOnly) else { continue }
            guard Self.key(String(line)) != nil, line.utf8.allSatisfy({ $0 == 0x09 || $0 >= 0x20 && $0 != 0x7F }) else {
                throw TowlineError(
                    .unusableOption,
                    "cookies: line \(index + 1) is not a cookie in the Netscape format (seven fields with tabs between"
                        + " them)")
            }
            state.withLock { $0.add(String(line), isStored: true) }
        }
        state.withLock { $0.hasRead = true }
    }

    /// The stored cookies as lines of the Netscape format, oldest first.
    package var lines: [String] { state.withLock { Self.sorted($0.domains.values.flatMap(\.values)) } }

    /// Returns the cookies that may match a request, oldest first, for libcurl to select from.
    ///
    /// libcurl also sends Secure cookies to localhost over http. The user file's Secure cookies are sent over TLS only:
    /// another user of the machine may own the port.
    ///
    /// - Parameters:
    ///   - host: the host of the URL, in ASCII; `nil` for the cookies of all hosts.
    ///   - isEncrypted: `true` for https.
    ///   - stored: `true` to include the cookies of the user's file.
    ///   - read: a function that returns the lines of that file. Not called again after a success.
    package func lines<Failure: Error>(
        for host: String?, isEncrypted: Bool, stored: Bool, read: () throws(Failure) -> [String]
    ) throws(Failure) -> [String] {
        try state.withLock { state throws(Failure) in
            if stored, !state.hasRead {
                for line in try read() { state.add(line, isStored: true) }
                state.hasRead = true
            }
            guard !state.domains.isEmpty else { return [] }
            let found = host.map { state.cookies(of: $0) } ?? state.domains.values.flatMap(\.values)
            return Self.sorted(found.filter { !$0.isStored || stored && (isEncrypted || !$0.isSecure) })
        }
    }

    /// Adds the cookies that a response set, and removes those that the response deleted.
    ///
    /// - Parameters:
    ///   - lent: the cookies that libcurl had for the request (from `lines`).
    ///   - returned: the cookies that libcurl has after the response.
    package func update(lent: [String], returned: [String]) {
        guard lent != returned else { return }
        let (before, after) = (Set(lent), Set(returned.compactMap(Self.key)))
        state.withLock { state in
            for line in lent {
                // A cookie that another response has set meanwhile stays.
                guard let key = Self.key(line), !after.contains(key), state[key]?.line == line else { continue }
                state[key] = nil
            }
            for line in returned where !before.contains(line) {
                // A response over http does not replace a Secure cookie (RFC 6265bis §5.7). libcurl has not seen this
                // one.
                if let old = Self.key(line).flatMap({ state[$0] }), old.isStored, old.isSecure,
                    !before.contains(old.line)
                {
                    continue
                }
                state.add(line, isStored: false)
            }
        }
    }

    private static func sorted(_ cookies: some Sequence<Cookie>) -> [String] {
        cookies.sorted { $0.number < $1.number }.map(\.line)
    }

    /// Returns the fields that identify the cookie in a line of the Netscape format; `nil` if the line is not a cookie.
    private static func key(_ line: String) -> Key? {
        let fields = fields(line)
        guard fields.count >= 6 else { return nil }
        let domain = (fields[0].hasPrefix(httpOnly) ? fields[0].dropFirst(httpOnly.count) : fields[0])
            .drop { $0 == "." }
        return Key(domain: domain.lowercased(), rest: "\(fields[1])\t\(fields[2])\t\(fields[5])")
    }

    private static let httpOnly = "#HttpOnly_"

    private static func isSecure(_ line: String) -> Bool { fields(line)[3] == "TRUE" }

    private static func fields(_ line: String) -> [Substring] {
        line.split(separator: "\t", maxSplits: 6, omittingEmptySubsequences: false)
    }
}

extension CookieJar: Hashable {
    /// Returns `true`: connection options that differ only in the store of cookies count as equal, so that their
    /// requests may use one connection.
    package static func == (first: CookieJar, second: CookieJar) -> Bool { true }

    /// Adds nothing to the hash, because all stores of cookies count as equal (see `==`).
    package func hash(into hasher: inout Hasher) {}
}
