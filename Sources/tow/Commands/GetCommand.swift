import ArgumentParser
import TowlineCore
import TowlineEngine

struct GetCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: GetShortcut.name,
        abstract: "Download files. Run the same command again to resume.",
        discussion: """
            If a download is interrupted, run the same command in the same directory to resume it. The file NAME \
            appears only when it is complete. Until then, its data is in NAME.tow and its state in NAME.tow-journal. \
            To give up the download and discard its data, delete both files.

            Examples:
              tow get URL                                download a file, or resume it
              tow get -o disk.iso URL                    choose the file name
              tow get --limit-rate 2M URL                limit the speed to 2 MiB/s
              tow get -d downloads -i urls.txt           download a list of URLs
              tow get --checksum sha256:9f86d0... URL    verify the checksum of the file
              tow get -o - URL | tar xz                  write to a pipe
              tow add URL                                download in the background (towd)

            While a download waits, its progress line shows the reason and the time until the next attempt. For a \
            background download, 'tow list' shows the ID and 'tow show ID' shows the reason. 'tow status FILE' shows \
            an unfinished download. 'tow probe URL' shows whether a download from this server can be resumed.

            Exit status:
                0  all files are downloaded and saved to disk (unless --no-sync)
                1  a failure that is not listed below, or several different failures
                2  an option, a URL or a line in a list is not valid
                3  network or server failure after all attempts; run again to resume
                4  the file changed on the server, and --if-changed fail was given
                5  wrong checksum; the data is kept as NAME.tow-bad
                6  disk error: disk full, permission denied, no such directory
                7  the file already exists (see --if-exists)
                8  the server refused the request (401, 403, 404, 410)
                9  another process is downloading to the same file
              130  interrupted with Ctrl-C (SIGINT); run again to resume
              143  interrupted by SIGTERM or SIGHUP; run again to resume
            """
    )

    @Argument(help: ArgumentHelp("URLs to download (http:// or https://).", valueName: "url"))
    var urls: [String] = []

    @OptionGroup(title: "Output")
    var destination: DestinationOptions

    @OptionGroup(title: "Several downloads")
    var list: ListOptions

    @OptionGroup(title: "Speed")
    var speed: SpeedOptions

    @OptionGroup(title: "Verification")
    var proof: ProofOptions

    @OptionGroup(title: "Verification")
    var change: ChangeOptions

    @OptionGroup(title: "Request")
    var request: RequestOptions

    @OptionGroup(title: "Connection")
    var route: RouteOptions

    @OptionGroup(title: "Connection")
    var connection: ConnectionOptionGroup

    @OptionGroup(title: "Retries")
    var failures: FailureOptions

    @OptionGroup(title: "Messages")
    var report: ReportOptions

    /// The checked arguments, or the error in them; `nil` before `validate`. Made once: a file with a password may be a
    /// pipe.
    private var plan: Result<GetPlan, any Error>?

    /// The keys of all properties except `plan`, which is not an argument.
    private enum CodingKeys: String, CodingKey {
        case urls, destination, list, speed, proof, change, request, route, connection, failures, report
    }

    /// Checks the arguments before anything starts. Stores an error instead of throwing it: the parser's errors about
    /// unknown options come after this call and explain more.
    mutating func validate() { plan = Result { try checkedPlan() } }

    /// Returns the checked arguments, or throws the error that `validate` found. `nil` before `validate`.
    func checked() throws -> GetPlan? { try plan?.get() }

    func run() async throws {
        let plan: GetPlan
        do {
            guard let checked = try checked() else { return }
            plan = checked
        } catch let problem as ValidationError {
            throw UsageProblem(problem.message, in: Self.self)
        }
        let status = try await GetRun(plan: plan).perform()
        if status != ExitStatus.success.rawValue { throw ExitCode(status) }
    }

    private func checkedPlan() throws -> GetPlan {
        let groups: [any SettingOptions] = [
            destination, speed, proof, change, request, route, connection, failures,
        ]
        return try GetPlan(
            GetArguments(
                urls: urls, given: groups.flatMap(\.given), inputFiles: list.inputFiles, concurrency: list.concurrency,
                listOptions: list.listOptions, credentialsFor: list.credentialsFor,
                limitRateTotal: list.limitRateTotal, saveCookies: destination.saveCookies,
                report: Reporting(
                    isQuiet: report.quiet, isVerbose: report.verbose, isJSON: report.json, progress: report.progress)))
    }
}
