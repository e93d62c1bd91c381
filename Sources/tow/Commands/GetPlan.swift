import ArgumentParser
import TowlineCore
import TowlineEngine

/// The arguments of `tow get`, as text.
struct GetArguments {
    var urls: [String] = []
    /// Settings in the order in which they apply.
    var given: [(Setting, String)] = []
    /// The paths of the lists (`-i`).
    var inputFiles: [String] = []
    var concurrency: String?
    /// The values of `--list-options` and `--credentials-for`.
    var listOptions: String?
    var credentialsFor: String?
    var limitRateTotal: String?
    var saveCookies: String?
    var report = Reporting()
}

/// The options for output during the run.
struct Reporting: Equatable {
    var isQuiet = false
    var isVerbose = false
    var isJSON = false
    var progress = ReportOptions.Progress.auto
}

/// The values of `--list-options`: the options that a list of URLs may set.
enum ListOptionPolicy: String, CaseIterable {
    /// Only the options of `Setting.isSafeInList`.
    case safe
    /// Every option, and every path.
    case all
}

/// The checked arguments of `tow get`.
struct GetPlan {
    let urls: [HTTPURL]
    let settings: DownloadSettings
    /// The paths of the lists (`-i`).
    let listPaths: [String]
    /// `true` if lists may set every option (`--list-options all`).
    let trustsLists: Bool
    /// The servers that receive the secrets of `settings` when URLs come from a list.
    let secrets: SecretScope
    let batch: BatchOptions
    /// The path of the file for cookies (`--save-cookies`), or `nil`.
    let cookieFile: String?
    let report: Reporting

    /// Checks all that can be checked before a request is sent.
    ///
    /// - Throws: `ValidationError`.
    init(_ arguments: GetArguments) throws {
        var settings = DownloadSettings()
        try settings.apply(arguments.given)
        settings.followsLink = settings.output != nil
        self.settings = settings
        listPaths = arguments.inputFiles
        report = arguments.report
        cookieFile = arguments.saveCookies
        do {
            if let cookieFile { try CookieFile.checkDestination(cookieFile) }
        } catch {
            throw ValidationError("--save-cookies: \(error.message)")
        }
        try Self.checkCombinations(arguments, settings)
        var batch = BatchOptions()
        do {
            if let concurrency = arguments.concurrency {
                batch.concurrency = try OptionValue.integer(concurrency, in: 1...10_000)
            }
        } catch {
            throw ValidationError("--concurrency: \(error.message)")
        }
        do {
            if let total = arguments.limitRateTotal { batch.rateLimit = try OptionValue.rate(total) }
        } catch {
            throw ValidationError("--limit-rate-total: \(error.message)")
        }
        self.batch = batch
        trustsLists = try Self.listPolicy(arguments.listOptions) == .all
        do {
            urls = try arguments.urls.map { url throws(TowlineError) in try HTTPURL(typed: url) }
            for url in urls { _ = try settings.options(for: url) }
        } catch {
            throw ValidationError(OptionNames.add(to: error.message))
        }
        do {
            let named = try arguments.credentialsFor.map { text throws(TowlineError) in
                [try HTTPURL(typed: text).origin]
            }
            secrets = SecretScope(naming: named ?? urls.map(\.origin))
        } catch {
            throw ValidationError("--credentials-for: \(error.message)")
        }
    }

    private static func listPolicy(_ text: String?) throws -> ListOptionPolicy {
        do {
            return try text.map { text throws(TowlineError) in try OptionValue.choice(text) } ?? .safe
        } catch {
            throw ValidationError("--list-options: \(error.message)")
        }
    }

    private static func checkCombinations(_ arguments: GetArguments, _ settings: DownloadSettings) throws {
        guard !arguments.urls.isEmpty || !arguments.inputFiles.isEmpty else {
            throw ValidationError("No URL was given. Give a URL, or a file with a list of URLs: -i FILE.")
        }
        let isSingle = arguments.urls.count == 1 && arguments.inputFiles.isEmpty
        if settings.output != nil && !isSingle {
            throw ValidationError(
                "-o names one file and needs exactly one URL. To save several files in a directory, use -d DIRECTORY.")
        }
        if settings.options.checksum != nil && !isSingle {
            throw ValidationError(
                "--checksum applies to one file and needs exactly one URL."
                    + " In a list of URLs (-i), write checksum=VALUE in an indented line below each URL.")
        }
        if !settings.mirrors.isEmpty && !isSingle {
            throw ValidationError(
                "--mirror is another URL of one file and needs exactly one URL."
                    + " In a list of URLs (-i), write mirror=URL in an indented line below each URL.")
        }
        if settings.directory.utf8.contains(0x3D), !DownloadSettings.isDirectory(settings.directory) {
            throw ValidationError(
                "-d: this directory does not exist. In curl, -d sends a request body;"
                    + " tow get sends GET requests without a body.")
        }
        if arguments.report.isQuiet && arguments.report.isVerbose {
            throw ValidationError("-q and -v cannot be used together.")
        }
        if settings.output == "-" && arguments.report.isJSON {
            throw ValidationError("-o - and --json cannot be used together because both write to standard output.")
        }
    }
}
