import Glibc
internal import TowlineCore
internal import TowlineEngine

/// The proxies that environment variables name, chosen as libcurl chooses them (libcurl-env(3)).
///
/// Towline chooses the proxy instead of libcurl, so that it can check an address before libcurl quotes it with its
/// password, and an error can name the proxy and the variable.
struct ProxyEnvironment: Sendable {
    /// The URL of a proxy and the environment variable that names it.
    struct Choice: Hashable, Sendable {
        let address: String
        let variable: String
    }

    private let http: Choice?
    private let https: Choice?
    private let exceptions: String

    /// Chooses the proxies and their exceptions from environment variables.
    ///
    /// - Parameter value: returns the value of the variable with a name; `nil` or empty if the variable is not set.
    init(_ value: (String) -> String?) {
        func first(_ names: String...) -> Choice? {
            for name in names {
                if let text = value(name), !text.isEmpty { return Choice(address: text, variable: name) }
            }
            return nil
        }
        // Not HTTP_PROXY: a CGI program gets a header of the client under that name (CVE-2016-5385).
        http = first("http_proxy", "all_proxy", "ALL_PROXY")
        https = first("https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY")
        exceptions = first("no_proxy", "NO_PROXY")?.address ?? ""
    }

    /// Returns the proxies that the environment variables of this process name at the time of the call.
    static func current() -> ProxyEnvironment {
        ProxyEnvironment { name in getenv(name).map { String(cString: $0) } }
    }

    /// Returns the proxy for a URL, chosen by its scheme and `no_proxy`; `nil` if the request must go to the server
    /// directly.
    func proxy(for url: HTTPURL) -> Choice? {
        guard let choice = url.scheme == .http ? http : https, !isExempt(url.host) else { return nil }
        return choice
    }

    /// Returns whether the variable `no_proxy` exempts a host from the proxy. The variable is `*` alone, or a list of
    /// domains with or without a leading dot, IP addresses and networks such as `10.0.0.0/8`, separated by commas or
    /// white space.
    private func isExempt(_ host: String) -> Bool {
        if exceptions == "*" { return true }
        let name = host.hasPrefix("[") ? String(host.dropFirst().dropLast()) : host
        let address = Self.address(name)
        return exceptions.split { $0 == "," || $0.isWhitespace }.contains { token in
            address.map { Self.contains(token, $0) } ?? Self.isDomain(token, of: name)
        }
    }

    private static func isDomain(_ token: Substring, of host: String) -> Bool {
        // The host is already in ASCII.
        let isASCII = token.utf8.allSatisfy { $0 < 0x80 }
        let text = isASCII ? token.lowercased() : (try? HTTPURL(parsing: "http://\(token.drop { $0 == "." })/"))?.host
        var domain = (text ?? "")[...]
        if domain.hasSuffix(".") { domain.removeLast() }
        if domain.hasPrefix(".") { domain.removeFirst() }
        let host = host.hasSuffix(".") ? host.dropLast() : host[...]
        return !domain.isEmpty && (host == domain || host.hasSuffix(".\(domain)"))
    }

    /// Returns whether a token of `no_proxy` is the given IP address or a network that contains it.
    private static func contains(_ token: Substring, _ bytes: [UInt8]) -> Bool {
        let parts = token.split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
        let network = parts[0].hasPrefix("[") ? parts[0].dropFirst().dropLast() : parts[0]
        guard let other = address(String(network)), other.count == bytes.count else { return false }
        guard parts.count == 2 else { return other == bytes }
        guard let bits = Int(parts[1]), (1...bytes.count * 8).contains(bits) else { return false }
        return bytes.indices.allSatisfy { index in
            let mask = UInt8(truncatingIfNeeded: 0xFF00 >> min(8, max(0, bits - 8 * index)))
            return bytes[index] & mask == other[index] & mask
        }
    }

    /// Returns the bytes of an IP address in network order; `nil` for other text.
    private static func address(_ text: String) -> [UInt8]? {
        for (family, count) in [(AF_INET, 4), (AF_INET6, 16)] {
            var bytes = [UInt8](repeating: 0, count: count)
            if inet_pton(family, text, &bytes) == 1 { return bytes }
        }
        return nil
    }
}

extension ConnectionOptions {
    /// Returns the options with the proxy that the environment names for a URL. Returns them unchanged if the user gave
    /// a proxy, if proxies are not allowed (`publicAddressesOnly`), or if the environment names no proxy for the URL.
    func withProxy(for url: HTTPURL, from environment: ProxyEnvironment) -> ConnectionOptions {
        guard proxy == nil, !publicAddressesOnly, let choice = environment.proxy(for: url) else { return self }
        var options = self
        (options.proxy, options.proxyVariable) = (choice.address, choice.variable)
        return options
    }

    /// Returns the proxy that requests use, parsed from its URL; `nil` if requests go to the server directly.
    ///
    /// - Throws: `proxyUnusable` if the URL of the proxy is not valid.
    func checkedProxy() throws(TransportFailure) -> ProxyAddress? {
        guard !publicAddressesOnly, let proxy, !proxy.isEmpty else { return nil }
        do throws(TowlineError) {
            return try ProxyAddress(parsing: proxy)
        } catch {
            let place = proxyVariable.map { "the environment variable \($0) is not valid: " } ?? ""
            throw TransportFailure(.proxyUnusable, place + error.message)
        }
    }
}
