import ArgumentParser
import Glibc
import TowlineCore
import TowlineWire

/// `tow add`.
struct AddCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "add",
        abstract: "Has towd download in the background.",
        discussion: """
            Returns as soon as the download is in the list; what becomes of it, 'tow list' and the page tell. Starts \
            towd if it does not run. The same URL to the same place is the same download; one that failed or was \
            cancelled begins again with the options given now.

            Files go to the downloads directory of towd (~/Downloads, unless it was told otherwise) or below.

            Examples:
              tow add https://example.org/image.iso
              tow add -d films --group films https://example.org/a.mkv https://example.org/b.mkv
              tow add -i urls.txt
            """
    )

    @Argument(help: ArgumentHelp("http or https.", valueName: "url"))
    var urls: [String] = []

    @Option(
        name: [.customShort("i"), .customLong("input-file")],
        help: ArgumentHelp("URLs from a file, a line each; '-': stdin.", valueName: "file"),
        completion: .file())
    var inputFiles: [String] = []

    @Option(
        name: .shortAndLong,
        help: ArgumentHelp("The directory, in the downloads directory; it is made.", valueName: "dir"))
    var directory: String?

    @Option(name: .shortAndLong, help: ArgumentHelp("The file's name; needs exactly one URL.", valueName: "name"))
    var output: String?

    @Option(
        name: [.customShort("x"), .long], help: ArgumentHelp("Connections for one file, 1 to 128.", valueName: "n"))
    var connections: String?

    @Option(help: ArgumentHelp("For each download, in bytes per second, such as 2M.", valueName: "rate"))
    var limitRate: String?

    @Option(
        name: .customLong("mirror"), parsing: .unconditionalSingleValue,
        help: ArgumentHelp(
            "Another URL of the same file; may be repeated, and needs exactly one URL.", valueName: "url"))
    var mirrors: [String] = []

    @Option(help: ArgumentHelp("What the file must hash to; needs exactly one URL.", valueName: "algorithm:hex"))
    var checksum: String?

    @Option(
        name: [.customShort("H"), .customLong("header")], parsing: .unconditionalSingleValue,
        help: ArgumentHelp("A header field to send; may be repeated.", valueName: "Name: value"))
    var headers: [String] = []

    @Option(help: ArgumentHelp("Credentials for basic authentication.", valueName: "name:password"))
    var user: String?

    @Option(
        help: ArgumentHelp("The same from the first line of a file, out of sight of ps.", valueName: "file"),
        completion: .file())
    var userFile: String?

    @Option(help: ArgumentHelp("Higher goes first. (default: 0)", valueName: "n"))
    var priority: Int?

    @Option(help: ArgumentHelp("The group it counts in.", valueName: "name"))
    var group: String?

    @Option(
        help: ArgumentHelp("Where the name is taken: skip, fail, overwrite, rename.", valueName: "policy"),
        completion: .list(["skip", "fail", "overwrite", "rename"]))
    var ifExists: String?

    @Flag(help: "Unpack the archive once it is there.")
    var unpack = false

    @Flag(help: "Add without starting.")
    var paused = false

    @Flag(help: "Go on with length and overlap alone where the server proves nothing.")
    var unsafeResume = false

    @Flag(help: "One JSON object a line on standard output.")
    var json = false

    @OptionGroup(title: "Service")
    var service: ServiceOptions

    func run() async throws {
        let requests = try newDownloads()
        var added: [Wire.Download] = []
        var rest = requests[...]
        while !rest.isEmpty {
            let batch = Array(try Self.batch(rest))
            rest = rest.dropFirst(batch.count)
            added += try await service.askStarting { try await $0.add(batch) }
        }
        try ServiceReport(json: json).write(added)
    }

    /// As many of the first as go into one request, by their number and their size.
    private static func batch(_ requests: ArraySlice<Wire.NewDownload>) throws -> ArraySlice<Wire.NewDownload> {
        var (count, size) = (0, 0)
        for request in requests.prefix(Wire.NewDownloads.maximum) {
            size += try ServiceClient.encode(request).count + 1
            // One that is too long by itself is for the service to refuse.
            if count > 0, size > Wire.NewDownloads.maximumSize { break }
            count += 1
        }
        return requests.prefix(count)
    }

    private func newDownloads() throws -> [Wire.NewDownload] {
        var urls = urls
        for file in inputFiles { urls += try Self.lines(file) }
        guard !urls.isEmpty else { throw UsageProblem("Nothing to add: give a URL, or a list of them.", in: Self.self) }
        if urls.count != 1, output != nil || checksum != nil || !mirrors.isEmpty {
            throw UsageProblem(
                "-o, --checksum and --mirror are of one file, so they need exactly one URL.", in: Self.self)
        }
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
        return urls.map { url in
            var request = model
            request.url = url
            return request
        }
    }

    private static func header(_ text: String) throws(TowlineError) -> Wire.Header {
        let field = try OptionValue.field(text)
        return Wire.Header(name: field.name, value: field.value)
    }

    /// URLs, without empty lines and what begins with `#`.
    private static func lines(_ path: String) throws -> [String] {
        guard let text = TextFile.read(path == "-" ? "/dev/stdin" : path, limit: 64 << 20) else {
            throw UsageProblem(
                "cannot read \(TerminalSafeText.make(path)): \(String(cString: strerror(errno)))", in: Self.self)
        }
        return text.split(whereSeparator: \.isNewline).map { $0.trimmed }.filter { !$0.isEmpty && !$0.hasPrefix("#") }
    }
}

extension Substring {
    /// Without white space at its ends.
    fileprivate var trimmed: String {
        var rest = self
        while rest.first?.isWhitespace == true { rest.removeFirst() }
        while rest.last?.isWhitespace == true { rest.removeLast() }
        return String(rest)
    }
}

/// Downloads of the service on standard output.
struct ServiceReport {
    let json: Bool

    /// A line each.
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
