import ArgumentParser
import Glibc
import TowlineClient
import TowlineCore
import TowlineWire

struct AddCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "add",
        abstract: "Download in the background with the towd service.",
        discussion: """
            The command adds the downloads to the list of towd and returns. 'tow list', 'tow watch' and the web page \
            show their progress. If towd is not running, 'tow add' starts it.

            Adding the same URL with the same destination again does not create a second download. The options are \
            applied to the existing download, or the command fails and names those that were not applied. If the \
            download failed or was cancelled, it starts again with the new options.

            Files are saved in the downloads directory of towd (default: ~/Downloads) or in a subdirectory.

            Examples:
              tow add https://example.org/image.iso
              tow add -d films --group films https://example.org/a.mkv https://example.org/b.mkv
              tow add -i urls.txt
            """
    )

    @Argument(help: ArgumentHelp("URLs to download (http:// or https://).", valueName: "url"))
    var urls: [String] = []

    @Option(
        name: [.customShort("i"), .customLong("input-file")],
        help: ArgumentHelp(
            """
            Add the URLs in this file, one per line; - reads standard input. Lines that start with # are ignored. \
            Indented lines below a URL are options for that URL: output, directory, checksum, mirror and limit-rate. \
            In other text, such as CSV, Markdown or a copied curl command, the links are found.
            """, valueName: "file"),
        completion: .file())
    var inputFiles: [String] = []

    @Option(
        help: ArgumentHelp(
            "With a list: send the password, headers and cookies of the command line only to the server of this URL. (default: the only server of the list)",
            valueName: "url"))
    var credentialsFor: String?

    @Option(
        name: .shortAndLong,
        help: ArgumentHelp(
            "Save files in this directory inside the downloads directory; it is created if needed.",
            valueName: "dir"))
    var directory: String?

    @Option(
        name: .shortAndLong,
        help: ArgumentHelp(
            "Name of the file. Needs exactly one URL. (default: name from the server or URL)", valueName: "name"))
    var output: String?

    @Option(help: ArgumentHelp("Priority. Downloads with a higher number start first. (default: 0)", valueName: "n"))
    var priority: Int?

    @Option(
        help: ArgumentHelp(
            "Put the downloads in the group with this name. 'tow list --group NAME' lists them.", valueName: "name"))
    var group: String?

    @Option(
        help: ArgumentHelp(
            """
            Action if the file exists: skip, fail, overwrite (when the new file is complete), rename or update \
            (overwrite if the server has another version). (default: fail)
            """,
            valueName: "policy"),
        completion: .list(["skip", "fail", "overwrite", "rename", "update"]))
    var ifExists: String?

    @Flag(help: "Unpack the file after the download: zip, tar, tar.gz, tar.xz or tar.zst.")
    var unpack = false

    @Flag(help: "Add the downloads without starting them.")
    var paused = false

    @Flag(help: "Print one JSON object per line to standard output.")
    var json = false

    @OptionGroup(title: "Speed")
    var speed: SpeedOptions

    @OptionGroup(title: "Verification")
    var proof: ProofOptions

    @OptionGroup(title: "Request")
    var request: RequestOptions

    @OptionGroup(title: "Connection")
    var route: RouteOptions

    @OptionGroup(title: "Retries")
    var failures: FailureOptions

    @OptionGroup(title: "Service")
    var service: ServiceOptions

    func validate() throws {
        guard failures.maxWait == nil || failures.maxTries != nil else {
            throw ValidationError(
                "--max-wait needs --max-tries: without a limit of attempts, a download never fails for a wait.")
        }
    }

    func run() async throws {
        let requests = try newDownloads()
        var added: [Wire.Download] = []
        var rest = requests[...]
        while !rest.isEmpty {
            let batch = Array(try Self.batch(rest))
            rest = rest.dropFirst(batch.count)
            do {
                added += try await service.askStarting { try await $0.add(batch) }
            } catch let error as TowlineError {
                throw RequestField.namingOptions(error)
            }
        }
        try ServiceReport(json: json).write(added)
    }

    /// Returns the first downloads that fit in one request, by their number and size.
    private static func batch(_ requests: ArraySlice<Wire.NewDownload>) throws -> ArraySlice<Wire.NewDownload> {
        var (count, size) = (0, 0)
        for request in requests.prefix(Wire.NewDownloads.maximum) {
            size += try ServiceClient.encode(request).count + 1
            // A single download that is too long is sent anyway: the service refuses it.
            if count > 0, size > Wire.NewDownloads.maximumSize { break }
            count += 1
        }
        return requests.prefix(count)
    }

    private func newDownloads() throws -> [Wire.NewDownload] {
        let groups: [any SettingOptions] = [speed, proof, request, route, failures]
        // The service has defaults of its own: only options of the command line are sent.
        var settings = DownloadSettings(options: TransferOptions())
        let given = givenValues([.ifExists: ifExists]) + groups.flatMap(\.given)
        do {
            try settings.apply(given)
        } catch let problem as ValidationError {
            throw UsageProblem(problem.message, in: Self.self)
        }
        var model = model()
        model.take(settings)
        model.given = Set(given.compactMap { setting, _ in setting.fieldWithDefault })
        let named = urls.map { url in
            var request = model
            request.url = HTTPURL.withScheme(url)
            return request
        }
        var listed: [Wire.NewDownload] = []
        do throws(TowlineError) {
            for file in inputFiles {
                let (requests, notices) = try AddList(model: model, settings: settings).requests(in: file)
                listed += requests
                var errors = OutputDescriptor(STDERR_FILENO)
                for notice in notices { errors.write("tow: \(notice)\n") }
            }
        } catch {
            throw UsageProblem("\(OptionNames.add(to: error.message)). No download was added.", in: Self.self)
        }
        let requests = named + listed
        guard !requests.isEmpty else {
            throw UsageProblem("No URL to add. Give a URL, or a file with URLs (-i FILE).", in: Self.self)
        }
        if requests.count != 1, output != nil || settings.options.checksum != nil || !settings.mirrors.isEmpty {
            throw UsageProblem(
                "The options -o, --checksum and --mirror require exactly one URL, but there are \(requests.count).",
                in: Self.self)
        }
        guard settings.hasSecrets else { return requests }
        do throws(TowlineError) {
            let named = try (credentialsFor.map { [$0] } ?? urls).map { text throws(TowlineError) in
                try HTTPURL(typed: text).origin
            }
            var secrets = AddSecrets(settings: settings, scope: SecretScope(naming: named))
            return try requests.map { request throws(TowlineError) in try secrets.complete(request) }
        } catch {
            throw UsageProblem(error.message, in: Self.self)
        }
    }

    /// Returns the options that `tow get` does not have as a download without a URL.
    private func model() -> Wire.NewDownload {
        var model = Wire.NewDownload(url: "")
        model.directory = directory
        model.name = output
        model.priority = priority
        model.group = group
        if unpack { model.unpack = .wanted(true) }
        if paused { model.startsPaused = true }
        return model
    }
}

extension Setting {
    /// The field of a request whose default value can be given explicitly; `nil` for other settings.
    fileprivate var fieldWithDefault: RequestField? {
        switch self {
        case .ifExists: .existing
        case .stallTimeout: .stallTimeout
        case .retryWait: .retryWait
        case .maxRedirects: .maximumRedirects
        default: nil
        }
    }
}

/// The report of downloads on standard output, as text or JSON.
struct ServiceReport {
    let json: Bool

    /// Writes one line per download.
    func write(_ downloads: [Wire.Download]) throws {
        var output = OutputDescriptor(STDOUT_FILENO)
        guard json else {
            return output.write(DownloadLines(style: .forOutput(STDOUT_FILENO)).table(downloads))
        }
        for download in downloads {
            output.write(JSONObject.printable(try ServiceClient.encode(download)) + "\n")
        }
    }
}
