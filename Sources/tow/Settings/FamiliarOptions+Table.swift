/// The table of options of other programs.
extension FamiliarOptions {
    /// The meaning of an option for `tow`.
    enum Use {
        /// Requests something that `tow` always does.
        case ignored
        /// Stands for these words of `tow`.
        case words([String])
        /// Another name of an option with a value.
        case value(String)
        /// Names a URL.
        case url
        /// Has another meaning, or requests something that `tow` does not do. Contains a message with the alternative.
        case refused(String)
        case header
        case userAgent
        case referer
        case cookie
        case method
        case continueAt
        case remoteName
        case continueOrCookieJar
        case silentOrSplit
        case list
        case connections

        var takesValue: Bool {
            switch self {
            case .value, .url, .header, .userAgent, .referer, .cookie, .method, .continueAt, .list, .connections: true
            case .ignored, .words, .refused, .remoteName, .continueOrCookieJar, .silentOrSplit: false
            }
        }
    }

    /// Returns what a long option of another program does; `nil` if the option is one of `tow` or unknown.
    static func use(of name: String) -> Use? {
        switch name {
        case "--location", "--remote-name", "--remote-name-all", "--remote-header-name", "--content-disposition",
            "--compressed", "--compression", "--continue", "--fail", "--show-error", "--globoff", "--http2":
            .ignored
        case "--silent": .words(["-q"])
        case "--no-check-certificate": .words(["--insecure"])
        case "--http1.1": .words(["--http1"])
        case "--ignore-content-length": .words(["--ignore-length"])
        case "--no-clobber": .words(["--if-exists", "skip"])
        case "--timestamping", "--conditional-get": .words(["--if-exists", "update"])
        case "--time-cond", "--etag-compare", "--etag-save": .refused(update)
        case "--header": .header
        case "--user-agent": .userAgent
        case "--referer": .referer
        case "--cookie": .cookie
        case "--request", "--method": .method
        case "--continue-at": .continueAt
        case "--url": .url
        case "--directory-prefix", "--output-dir", "--dir": .value("--directory")
        case "--output-document": .value("--output")
        case "--load-cookies": .value("--cookies")
        case "--ca-certificate": .value("--cacert")
        case "--max-redirs", "--max-redirect": .value("--max-redirects")
        case "--cookie-jar": .refused("use --save-cookies FILE")
        case "--head", "--spider": .refused(probe)
        case "--data", "--data-ascii", "--data-binary", "--data-raw", "--data-urlencode", "--form", "--form-string",
            "--post-data", "--post-file", "--body-data", "--body-file", "--upload-file", "--get":
            .refused(body)
        default: nil
        }
    }

    /// The short options, including those of `tow`, because they may share a word with others.
    static let short: [Character: Use] = [
        "q": .words(["-q"]), "h": .words(["-h"]), "o": .value("-o"), "d": .value("-d"), "i": .list, "j": .value("-j"),
        "x": .connections, "H": .header, "L": .ignored, "J": .ignored, "f": .ignored, "S": .ignored, "g": .ignored,
        "c": .continueOrCookieJar, "O": .remoteName, "s": .silentOrSplit, "k": .refused(insecure),
        "n": .words(["--netrc"]), "A": .userAgent, "e": .referer, "b": .cookie, "X": .method, "C": .continueAt,
        "P": .value("-d"), "u": .value("--user"), "I": .refused(probe), "F": .refused(body), "T": .refused(body),
        "N": .words(["--if-exists", "update"]), "z": .refused(update), "G": .refused(body),
        "U": .refused("use --user-agent AGENT, or --proxy http://NAME:PASSWORD@HOST:PORT"),
    ]

    /// The words of wget with one hyphen that are one option, not several short options.
    static let shortWords: [String: Use] = [
        "-nc": .words(["--if-exists", "skip"]), "-nv": .words(["--progress", "none"]),
    ]

    /// Headers that browsers copy and that `tow get` does not send: they would change which bytes the server sends, or
    /// they belong to the browser's connection.
    static let omittedHeaders: Set<String> = [
        "range", "if-range", "if-match", "if-none-match", "if-modified-since", "if-unmodified-since",
        "accept-encoding", "te", "connection", "keep-alive", "proxy-connection",
    ]

    private static let probe = "tow get downloads files. To see what a server offers, use 'tow probe URL'"
    /// Another meaning in wget (`--convert-links`) and aria2 (`--min-split-size=SIZE`) must not weaken TLS.
    private static let insecure = "in curl, -k accepts any TLS certificate; use --insecure. Otherwise omit it"
    private static let update = "tow keeps the ETag and the date with the file; use --if-exists update"
    private static let body =
        "tow get sends GET requests without a body, so this request was not sent. Use curl for it"
}
