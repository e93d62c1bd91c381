import ArgumentParser

/// Where the bytes go.
struct DestinationOptions: SettingOptions {
    @Option(
        name: .shortAndLong,
        help: ArgumentHelp(
            "The file to make; - for standard output. One URL only. By default the server or the URL says.",
            valueName: "file"), completion: .file())
    var output: String?

    @Option(
        name: .shortAndLong, help: ArgumentHelp("The directory to put files in; it must exist. (default: .)"),
        completion: .directory)
    var directory: String?

    @Option(
        help: ArgumentHelp(
            "If the name is taken: skip, fail, overwrite (once the new file is whole) or rename. (default: fail)",
            valueName: "policy"), completion: .list(["skip", "fail", "overwrite", "rename"]))
    var ifExists: String?

    @Flag(help: "Do not wait until the bytes are on stable storage.")
    var noSync = false

    @Flag(help: "Do not reserve disk space at the start.")
    var noPreallocate = false

    var given: [(Setting, String)] {
        givenValues([.output: output, .directory: directory, .ifExists: ifExists])
            + givenFlags([.noSync: noSync, .noPreallocate: noPreallocate])
    }
}

/// How fast.
struct SpeedOptions: SettingOptions {
    @Option(
        name: [.customShort("x", allowingJoined: true), .long],
        help: ArgumentHelp(
            "Connections for one file, 1 to 128. By default as many as pay off, at most 16.", valueName: "n"))
    var connections: String?

    @Option(
        name: .customLong("mirror"), parsing: .unconditionalSingleValue,
        help: ArgumentHelp(
            "Another URL of the same file; may be repeated. Parts come from each, and where one fails the others go on.",
            valueName: "url"))
    var mirrors: [String] = []

    @Option(help: ArgumentHelp("Bytes per second for each download, such as 500K or 10M.", valueName: "rate"))
    var limitRate: String?

    @Option(help: ArgumentHelp("Bytes per second for all downloads together.", valueName: "rate"))
    var limitRateTotal: String?

    @Flag(help: "One connection, first byte to last.")
    var sequential = false

    var given: [(Setting, String)] {
        mirrors.map { (.mirror, $0) } + givenValues([.connections: connections, .limitRate: limitRate])
            + givenFlags([.sequential: sequential])
    }
}

/// Many downloads.
struct ListOptions: ParsableArguments {
    @Option(
        name: [.customShort("i"), .customLong("input-file")],
        help: ArgumentHelp(
            "Download the URLs in a file, one a line; - for standard input. Indented lines below a URL are options for it, such as 'output=name' or 'checksum=sha256:…'.",
            valueName: "file"), completion: .file())
    var inputFiles: [String] = []

    @Option(
        name: [.customShort("j", allowingJoined: true), .customLong("concurrency")],
        help: ArgumentHelp(
            "Downloads at once, 1 to 10000. (default: 5; while each takes less than a second up to 16, 64 from far away, 264 over HTTP/2)",
            valueName: "n")
    )
    var concurrency: String?
}

/// What proves that the bytes are right.
struct ProofOptions: SettingOptions {
    @Option(
        name: .customLong("checksum"), parsing: .unconditionalSingleValue,
        help: ArgumentHelp(
            "What the file must hash to: md5, sha1, sha256, sha512 or crc32c. One URL only; in a list, each may have its own.",
            valueName: "algorithm:hex"))
    var checksums: [String] = []

    @Option(
        help: ArgumentHelp(
            "If a download is unfinished and the file changed on the server: restart, or fail and keep what is there. (default: restart)",
            valueName: "policy"), completion: .list(["restart", "fail"]))
    var ifChanged: String?

    @Flag(help: "Go on with length and overlap alone where the server gives no validator.")
    var unsafeResume = false

    var given: [(Setting, String)] {
        checksums.map { (.checksum, $0) } + givenValues([.ifChanged: ifChanged])
            + givenFlags([.unsafeResume: unsafeResume])
    }
}

/// When things go wrong.
struct FailureOptions: SettingOptions {
    @Option(
        help: ArgumentHelp(
            "Attempts in a row that bring nothing before a URL is given up; 0: no end. (default: 20)", valueName: "n"))
    var maxTries: String?

    @Option(
        help: ArgumentHelp(
            "The first wait after a failure; doubles up to a minute, each a quarter longer or shorter. (default: 1)",
            valueName: "seconds"))
    var retryWait: String?

    @Option(help: ArgumentHelp("No byte for so long: replace the connection. (default: 30)", valueName: "seconds"))
    var stallTimeout: String?

    var given: [(Setting, String)] {
        givenValues([.maxTries: maxTries, .retryWait: retryWait, .stallTimeout: stallTimeout])
    }
}

/// What is said meanwhile.
struct ReportOptions: ParsableArguments {
    /// `--progress`.
    enum Progress: String, CaseIterable, ExpressibleByArgument {
        case auto, bar, plain, none
    }

    @Flag(name: .shortAndLong, help: "Say nothing but errors.")
    var quiet = false

    @Flag(help: "One JSON object a line on standard output.")
    var json = false

    @Option(help: ArgumentHelp("How to show progress: auto, bar, plain or none.", valueName: "kind"))
    var progress = Progress.auto
}
