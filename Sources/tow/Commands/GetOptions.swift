import ArgumentParser

struct DestinationOptions: SettingOptions {
    @Option(
        name: .shortAndLong,
        help: ArgumentHelp(
            "Write to this file; - is standard output. Needs exactly one URL. (default: name from the server or URL)",
            valueName: "file"), completion: .file())
    var output: String?

    @Option(
        name: .shortAndLong,
        help: ArgumentHelp("Save files in this directory; it must exist. (default: .)"),
        completion: .directory)
    var directory: String?

    @Option(
        help: ArgumentHelp(
            """
            Action if the file exists: skip, fail, overwrite (when the new file is complete), rename or update \
            (overwrite if the server has another version). Except with overwrite and update, a complete file of this \
            same download is recognized and not downloaded again. (default: fail)
            """,
            valueName: "policy"), completion: .list(["skip", "fail", "overwrite", "rename", "update"]))
    var ifExists: String?

    @Flag(help: "Do not wait until the data is saved to disk (fsync). A power failure may then damage the file.")
    var noSync = false

    @Flag(help: "Do not check or reserve free disk space before the download.")
    var noPreallocate = false

    @Option(
        help: ArgumentHelp(
            "After the run, save all cookies to this file (Netscape format).", valueName: "file"),
        completion: .file())
    var saveCookies: String?

    var given: [(Setting, String)] {
        givenValues([.output: output, .directory: directory, .ifExists: ifExists])
            + givenFlags([.noSync: noSync, .noPreallocate: noPreallocate])
    }
}

struct SpeedOptions: SettingOptions {
    @Option(
        name: [.customShort("x", allowingJoined: true), .long],
        help: ArgumentHelp(
            "Maximum number of connections per file, 1 to 128. (default: automatic, up to 16)", valueName: "n"))
    var connections: String?

    @Option(
        name: .customLong("mirror"), parsing: .unconditionalSingleValue,
        help: ArgumentHelp(
            """
            Another URL of the same file; may be repeated. tow downloads from all URLs at once. If one fails, it \
            continues with the others.
            """,
            valueName: "url"))
    var mirrors: [String] = []

    @Option(
        help: ArgumentHelp(
            """
            Maximum speed of each download in bytes per second, for example 500K or 10M. K, M and G are powers of \
            1024. (default: no limit)
            """,
            valueName: "rate"))
    var limitRate: String?

    @Flag(help: "Download from the first byte to the last over one connection.")
    var sequential = false

    var given: [(Setting, String)] {
        mirrors.map { (.mirror, $0) } + givenValues([.connections: connections, .limitRate: limitRate])
            + givenFlags([.sequential: sequential])
    }
}

/// The options for several downloads.
struct ListOptions: ParsableArguments {
    @Option(
        name: [.customShort("i"), .customLong("input-file")],
        help: ArgumentHelp(
            """
            Download the URLs in this file, one per line; - reads standard input. Lines that start with # are ignored. \
            Indented lines below a URL are options for that URL, for example 'output=NAME' or 'checksum=sha256:...'.
            """,
            valueName: "file"), completion: .file())
    var inputFiles: [String] = []

    @Option(
        name: [.customShort("j", allowingJoined: true), .customLong("concurrency")],
        help: ArgumentHelp(
            "Maximum number of downloads at once, 1 to 10000. (default: automatic, starting at 5)", valueName: "n"))
    var concurrency: String?

    @Option(
        help: ArgumentHelp(
            """
            Maximum speed of all downloads together in bytes per second, for example 10M. K, M and G are powers of \
            1024. (default: no limit)
            """,
            valueName: "rate"))
    var limitRateTotal: String?

    @Option(
        help: ArgumentHelp(
            "Options that a list may set: safe (output, directory, checksum, mirror, limit-rate) or all. (default: safe)",
            valueName: "policy"), completion: .list(["safe", "all"]))
    var listOptions: String?

    @Option(
        help: ArgumentHelp(
            "With a list: send the password, headers and cookies of the command line only to the server of this URL. (default: the only server of the list)",
            valueName: "url"))
    var credentialsFor: String?
}

struct ProofOptions: SettingOptions {
    @Option(
        name: .customLong("checksum"), parsing: .unconditionalSingleValue,
        help: ArgumentHelp(
            """
            Expected checksum of the file: md5, sha1, sha256, sha512 or crc32c. On a mismatch, the data is kept as \
            NAME.tow-bad. Needs exactly one URL; in a list, write 'checksum=...' below each URL.
            """,
            valueName: "algorithm:hex"))
    var checksums: [String] = []

    @Option(
        help: ArgumentHelp(
            "Refuse files that are larger, for example 2G. K, M and G are powers of 1024. (default: no limit)",
            valueName: "size"))
    var maxSize: String?

    @Flag(help: "Do not verify the checksums that the server sends. --checksum is still verified.")
    var ignoreServerChecksums = false

    @Flag(
        name: .customLong("accept-html"),
        help: "Accept a web page even if the URL or the file name is that of another kind of file.")
    var acceptHTML = false

    @Flag(
        help: """
            Resume even if the server sends neither an ETag nor a Last-Modified date. Only the size and the last 64 \
            KiB are compared, so the file may mix two versions.
            """)
    var unsafeResume = false

    var given: [(Setting, String)] {
        checksums.map { (.checksum, $0) } + givenValues([.maxSize: maxSize])
            + givenFlags([
                .unsafeResume: unsafeResume, .ignoreServerChecksums: ignoreServerChecksums, .acceptHTML: acceptHTML,
            ])
    }
}

/// The options for a file that the server describes wrongly or changed, which `tow add` does not have.
struct ChangeOptions: SettingOptions {
    @Flag(
        help: """
            Ignore the Content-Length of the server, which is wrong: read until the connection closes. Uses one \
            connection, and an interrupted download restarts.
            """)
    var ignoreLength = false

    @Option(
        help: ArgumentHelp(
            """
            If the file changed on the server since an interrupted download: restart; fail and keep the downloaded \
            data; or accept whatever the server sends, even if it looks like an error. (default: restart)
            """,
            valueName: "policy"), completion: .list(["restart", "fail", "accept"]))
    var ifChanged: String?

    var given: [(Setting, String)] {
        givenValues([.ifChanged: ifChanged]) + givenFlags([.ignoreLength: ignoreLength])
    }
}

struct FailureOptions: SettingOptions {
    @Option(
        help: ArgumentHelp(
            "Give up after this many attempts in a row without new data; 0: never give up. (default: 20; tow add: no limit)",
            valueName: "n"))
    var maxTries: String?

    @Option(
        help: ArgumentHelp(
            "Wait before the first retry. The wait doubles with each failure, up to 60 seconds. (default: 1)",
            valueName: "seconds"))
    var retryWait: String?

    @Option(
        help: ArgumentHelp(
            "Fail if the server asks for a longer pause before the next request (Retry-After). (default: 3600; tow add: no limit)",
            valueName: "seconds"))
    var maxWait: String?

    @Option(
        help: ArgumentHelp(
            "Also retry after these HTTP statuses, such as 403,404.", valueName: "list"))
    var retryOn: String?

    @Option(
        help: ArgumentHelp(
            "Close a connection and reconnect if no data arrives for this many seconds. (default: 30)",
            valueName: "seconds"))
    var stallTimeout: String?

    var given: [(Setting, String)] {
        givenValues([
            .maxTries: maxTries, .retryWait: retryWait, .retryOn: retryOn, .maxWait: maxWait,
            .stallTimeout: stallTimeout,
        ])
    }
}

/// The options for output during the run.
struct ReportOptions: ParsableArguments {
    enum Progress: String, CaseIterable, ExpressibleByArgument {
        case auto, bar, plain, none
    }

    @Flag(name: .shortAndLong, help: "Print only errors.")
    var quiet = false

    @Flag(name: .shortAndLong, help: "Print each request, response and decision, without passwords.")
    var verbose = false

    @Flag(help: "Print events to standard output, one JSON object per line.")
    var json = false

    @Option(help: ArgumentHelp("Progress display. auto: bars on a terminal, plain lines elsewhere.", valueName: "kind"))
    var progress = Progress.auto
}
