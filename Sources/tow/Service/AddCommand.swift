import ArgumentParser
import Glibc
import TowlineCore
import TowlineWire

/// The command `tow add`.
struct AddCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "add",
        abstract: "Download in the background with the towd service.",
        discussion: """
            The command adds the downloads to the list of towd and returns. 'tow list', 'tow watch' and the web page \
            show their progress. If towd is not running, 'tow add' starts it.

            Adding the same URL with the same destination again does not create a second download. If the download \
            failed or was cancelled, it starts again with the new options.

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
            Indented lines below a URL are options for that URL: output, directory, checksum, mirror and limit-rate.
            """, valueName: "file"),
        completion: .file())
    var inputFiles: [String] = []

    @Option(
        help: ArgumentHelp(
            "With a list: send the password and headers of the command line only to the server of this URL. (default: the only server of the list)",
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

    @Option(
        name: [.customShort("x"), .long],
        help: ArgumentHelp(
            "Maximum number of connections per file, 1 to 128. (default: automatic, up to 16)", valueName: "n"))
    var connections: String?

    @Option(
        help: ArgumentHelp(
            """
            Maximum speed of each download in bytes per second, for example 2M. K, M and G are powers of 1024. \
            (default: no limit)
            """,
            valueName: "rate"))
    var limitRate: String?

    @Option(
        name: .customLong("mirror"), parsing: .unconditionalSingleValue,
        help: ArgumentHelp(
            "Another URL of the same file; may be repeated. Needs exactly one URL.", valueName: "url"))
    var mirrors: [String] = []

    @Option(
        help: ArgumentHelp(
            "Expected checksum of the file: md5, sha1, sha256, sha512 or crc32c. Needs exactly one URL.",
            valueName: "algorithm:hex"))
    var checksum: String?

    @Option(
        name: [.customShort("H"), .customLong("header")], parsing: .unconditionalSingleValue,
        help: ArgumentHelp(
            "Add a request header; may be repeated. Not sent to other hosts after a redirect.",
            valueName: "Name: value"))
    var headers: [String] = []

    @Option(
        help: ArgumentHelp(
            """
            User name and password for HTTP Basic or Digest authentication. Other users can see them in the process \
            list until tow has started; --user-file is safer.
            """,
            valueName: "name:password"))
    var user: String?

    @Option(
        help: ArgumentHelp("Read NAME:PASSWORD from the first line of this file.", valueName: "file"),
        completion: .file())
    var userFile: String?

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

    @Flag(
        help: """
            Resume even if the server sends no ETag and no Last-Modified date. Only the size and the last 64 KiB are \
            compared, so the file may mix two versions.
            """)
    var unsafeResume = false

    @Flag(help: "Do not verify the checksums that the server sends. --checksum is still verified.")
    var ignoreServerChecksums = false

    @Flag(
        name: .customLong("accept-html"),
        help: "Accept a web page even if the URL or the file name is that of another kind of file.")
    var acceptHTML = false

    @Flag(help: "Print one JSON object per line to standard output.")
    var json = false

    @OptionGroup(title: "Service")
    var service: ServiceOptions

    func run() async throws {
        let requests = try await newDownloads()
        var added: [Wire.Download] = []
        var rest = requests[...]
        while !rest.isEmpty {
            let batch = Array(try Self.batch(rest))
            rest = rest.dropFirst(batch.count)
            added += try await service.askStarting { try await $0.add(batch) }
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

    private func newDownloads() async throws -> [Wire.NewDownload] {
        let model = try model()
        let named = urls.map { url in
            var request = model
            request.url = HTTPURL.withScheme(url)
            return request
        }
        var listed: [Wire.NewDownload] = []
        do throws(TowlineError) {
            for file in inputFiles { listed += try await AddList(model: model).requests(in: file) }
        } catch {
            throw UsageProblem("\(error.message). No download was added.", in: Self.self)
        }
        let requests = named + listed
        guard !requests.isEmpty else {
            throw UsageProblem("No URL to add. Give a URL, or a file with URLs (-i FILE).", in: Self.self)
        }
        if requests.count != 1, output != nil || checksum != nil || !mirrors.isEmpty {
            throw UsageProblem(
                "The options -o, --checksum and --mirror require exactly one URL, but there are \(requests.count).",
                in: Self.self)
        }
        return listed.isEmpty && credentialsFor == nil ? requests : try withoutForeignSecrets(requests)
    }

    /// Returns the options of the command line as a download without a URL.
    private func model() throws -> Wire.NewDownload {
        var model = Wire.NewDownload(url: "")
        model.directory = directory
        model.name = output
        do throws(TowlineError) {
            model.connections = try connections.map { value throws(TowlineError) in
                try OptionValue.integer(value, in: 1...128)
            }
            model.rateLimit = try limitRate.map { value throws(TowlineError) in try OptionValue.rate(value) }
            if !headers.isEmpty { model.headers = try headers.map(Self.header) }
            model.user = user
            if let userFile { model.user = try OptionValue.secret(inFile: userFile) }
        } catch {
            throw UsageProblem(error.message, in: Self.self)
        }
        model.checksum = checksum
        if !mirrors.isEmpty { model.mirrors = mirrors }
        model.priority = priority
        model.group = group
        model.existing = ifExists
        if unpack { model.unpack = .wanted(true) }
        if paused { model.startsPaused = true }
        if unsafeResume { model.unsafeResume = true }
        if ignoreServerChecksums { model.ignoreServerChecksums = true }
        if acceptHTML { model.acceptHTML = true }
        return model
    }

    /// Removes the secrets of the command line from the requests for servers that must not see them.
    private func withoutForeignSecrets(_ requests: [Wire.NewDownload]) throws -> [Wire.NewDownload] {
        guard requests.contains(where: { $0 != Self.withoutSecrets($0) }) else { return requests }
        do throws(TowlineError) {
            let named = credentialsFor.map { [$0] } ?? urls
            var scope = SecretScope(
                naming: try named.map { text throws(TowlineError) in try HTTPURL(typed: text).origin })
            return try requests.map { request throws(TowlineError) in
                // The service refuses a URL that cannot be parsed.
                guard let origin = try? HTTPURL(parsing: request.url).origin, try scope.admits(origin) else {
                    return Self.withoutSecrets(request)
                }
                return request
            }
        } catch {
            throw UsageProblem(error.message, in: Self.self)
        }
    }

    private static func withoutSecrets(_ request: Wire.NewDownload) -> Wire.NewDownload {
        var request = request
        request.user = nil
        request.headers = request.headers?.filter { !SecretScope.isSecret(fieldNamed: $0.name) }
        return request
    }

    private static func header(_ text: String) throws(TowlineError) -> Wire.Header {
        let field = try OptionValue.field(text)
        return Wire.Header(name: field.name, value: field.value)
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
