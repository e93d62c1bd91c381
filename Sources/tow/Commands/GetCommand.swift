import ArgumentParser
import TowlineCore
import TowlineEngine

/// `tow get`.
struct GetCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: GetShortcut.name,
        abstract: "Downloads now. Running the same command again goes on.",
        discussion: """
            Nothing exists under the final name before it is whole. Until then NAME.tow holds the bytes and \
            NAME.tow-journal what is known of them.

            Examples:
              tow get https://example.org/image.iso
              tow get -o disk.iso --checksum sha256:9f86d0… https://example.org/image.iso
              tow get -d downloads -j 8 -i urls.txt
              tow get --limit-rate 2M -x 4 https://example.org/a https://example.org/b
              tow get -o - https://example.org/archive.tar.gz | tar xz

            Exit status: 0 everything is there; 1 failed, or several for different reasons; 2 usage; 3 the \
            network failed, run again to go on; 4 changed on the server; 5 wrong checksum; 6 disk; 7 the name is \
            taken; 8 refused by the server; 9 another process has it; 130, 143 interrupted, everything is kept.
            """
    )

    @Argument(help: ArgumentHelp("http or https.", valueName: "url"))
    var urls: [String] = []

    @OptionGroup(title: "Where it goes")
    var destination: DestinationOptions

    @OptionGroup(title: "Many downloads")
    var list: ListOptions

    @OptionGroup(title: "Speed")
    var speed: SpeedOptions

    @OptionGroup(title: "Proof")
    var proof: ProofOptions

    @OptionGroup(title: "Request")
    var request: RequestOptions

    @OptionGroup(title: "Connection")
    var connection: ConnectionOptionGroup

    @OptionGroup(title: "Failures")
    var failures: FailureOptions

    @OptionGroup(title: "Report")
    var report: ReportOptions

    /// What was asked for, once it is checked. Made once: a file with a password may be a pipe.
    private var plan: Result<GetPlan, any Error>?

    /// All but `plan`, which is no argument.
    private enum CodingKeys: String, CodingKey {
        case urls, destination, list, speed, proof, request, connection, failures, report
    }

    /// Everything that can be known to be wrong is said before anything is begun; but not here: what the parser still
    /// has to say of options that it does not know explains more.
    mutating func validate() { plan = Result { try checkedPlan() } }

    /// What was asked for. Throws what `validate` found wrong.
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
        let groups: [any SettingOptions] = [destination, speed, proof, request, connection, failures]
        return try GetPlan(
            GetArguments(
                urls: urls, given: groups.flatMap(\.given), inputFiles: list.inputFiles, concurrency: list.concurrency,
                limitRateTotal: speed.limitRateTotal,
                report: Reporting(isQuiet: report.quiet, isJSON: report.json, progress: report.progress)))
    }
}
