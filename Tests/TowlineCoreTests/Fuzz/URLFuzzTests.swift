import Testing
import TowlineCore

@Suite("Fuzz: URLs")
struct URLFuzzTests {
    private static let corpus = [
        "http://example.com/", "https://user:p%40ss@example.com:8443/a/b/../c.zip?x=1&sig=canary#frag",
        "http://[2001:db8::192.0.2.1]:80/%2e%2e/%2f", "HTTP://EXAMPLE.com.:0080", "http://bücher.example/é?ü",
        "https://h/a?X-Amz-Signature=canary&X-Amz-Credential=canary;token=canary", "http://a@b@c/d@e",
        "http://127.1/\\x",
        "http://h?@x/y", "http://h#@x/y", "http://xn--bcher-kva.example/ a b ",
    ]
    private static let words = [
        "http://", "https://", "://", "//", "/../", "/./", "/..", "/.", "\\", "@", ":", ":80", ":443", ":0", ":65535",
        ":65536",
        "[::1]", "[", "]", "%25", "%2f", "%5c", "#", "?", "&", "token=", "／", "。", "＠", "℀", "ß", "İ", "xn--",
        "example.com",
    ]

    @Test("What was read is what goes out, for every reader")
    func parsing() {
        Fuzzer(name: "HTTPURL", corpus: Self.corpus, words: Self.words).run { text, _ in
            switch Result(catching: { () throws(TowlineError) in try HTTPURL(parsing: text) }) {
            case .failure(let error):
                if error.code != .unusableURL { return "refused as \(error.code)" }
                return error.message.utf8.contains(where: ASCII.isControl)
                    ? "the message holds a control character" : nil
            case .success(let url):
                if Self.authority(of: text, backslashEnds: false)?.host != url.host {
                    return "the host was \(url.host)"
                }
                return Self.violation(url)
            }
        }
    }

    @Test("References stay at their origin unless they name another")
    func resolving() throws {
        let bases = try Self.corpus.map { try HTTPURL(parsing: $0) }
        let references = [
            "g", "../g", "./", "?y", "#s", "//h/x", "https://u:p@h/x", "/a/b", "g;x=1/../y", "..", "file:///x", "",
            " /x ", "/\\h",
            "a:b", "///x", "https://h/y?z", "https://h/y/../z",
        ]
        let known = try HTTPURL(parsing: "https://h/x")
        Fuzzer(name: "HTTPURL.resolving", corpus: references, words: Self.words).run { text, generator in
            let base = bases[generator.below(bases.count)]
            let result = Result(catching: { () throws(TowlineError) in try base.resolving(text) })
            let sooner = Result(catching: { () throws(TowlineError) in try base.resolving(text, after: known) })
            if (try? sooner.get()) != (try? result.get()) { return "another URL beside a known one" }
            switch result {
            case .failure(let error):
                if error.code != .redirectRefused { return "refused as \(error.code)" }
                return error.message.utf8.contains(where: ASCII.isControl)
                    ? "the message holds a control character" : nil
            case .success(let url):
                let trimmed = text.utf8.drop { $0 == 0x20 || $0 == 0x09 }
                let namesAuthority =
                    trimmed.starts(with: "//".utf8) || ASCII.lowercased(String(Substring(trimmed))).hasPrefix("http")
                if !namesAuthority, url.origin != base.origin || url.userInfo != base.userInfo {
                    return "left for \(url.origin)"
                }
                return Self.violation(url)
            }
        }
    }

    private static func violation(_ url: HTTPURL) -> String? {
        let text = url.requestText
        if text.utf8.count > HTTPURL.maximumByteCount { return "too long" }
        if !url.pathAndQuery.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F && !"\"<>\\^`{|}#".utf8.contains($0) }) {
            return "\(text) holds what may not go out"
        }
        if !url.pathAndQuery.hasPrefix("/") { return "the path has no slash" }
        if url.path.split(separator: "/").contains(where: { $0 == "." || $0 == ".." }) {
            return "dot segments are left"
        }
        guard let again = try? HTTPURL(parsing: text), again.origin == url.origin,
            again.pathAndQuery == url.pathAndQuery, again.userInfo == nil
        else { return "\(text) is read otherwise" }
        for backslashEnds in [false, true] {
            let read = authority(of: text, backslashEnds: backslashEnds)
            if read?.host != url.host || read?.port ?? url.scheme.defaultPort != url.port {
                return "\(text) has another host"
            }
        }
        guard let shown = try? HTTPURL(parsing: url.withoutSecrets) else { return "\(url) is no URL" }
        if shown.withoutSecrets != url.withoutSecrets || shown.userInfo != nil { return "\(url) has secrets left" }
        return nil
    }

    /// Another reading of the authority, by hand: from `//` to the first delimiter, after the last `@`.
    private static func authority(of text: String, backslashEnds: Bool) -> (host: String, port: Int?)? {
        let bytes = Array(text.utf8)
        guard let slashes = bytes.indices.first(where: { bytes[$0...].starts(with: "//".utf8) }) else { return nil }
        let rest = bytes[(slashes + 2)...]
        let end = rest.firstIndex { "/?#".utf8.contains($0) || backslashEnds && $0 == 0x5C } ?? rest.endIndex
        let hostAndPort = rest[..<end].split(separator: 0x40, omittingEmptySubsequences: false).last ?? []
        var host = hostAndPort
        var port: Int?
        if let colon = hostAndPort.lastIndex(of: 0x3A), !hostAndPort[colon...].contains(0x5D) {
            host = hostAndPort[..<colon]
            port = Int(String(decoding: hostAndPort[(colon + 1)...], as: UTF8.self))
        }
        // White space at the end belongs to nobody when the text ends with the authority.
        while end == bytes.endIndex, let last = host.last, last == 0x20 || last == 0x09 { host.removeLast() }
        return (String(decoding: host, as: UTF8.self).lowercased(), port)
    }
}
