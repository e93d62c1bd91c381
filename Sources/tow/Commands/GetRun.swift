import Glibc
import TowlineCore
import TowlineEngine

/// The run of a `tow get` command.
struct GetRun {
    let plan: GetPlan

    /// Returns the exit status when all downloads have ended, or soon after a signal.
    func perform() async throws(TowlineError) -> Int32 {
        // Check once: otherwise, each download of a long list would report this problem.
        if !plan.listPaths.isEmpty, !DownloadSettings.isDirectory(plan.settings.directory) {
            throw TowlineError(
                .unusableDestination,
                "the directory \(plan.settings.directory) does not exist or is not a directory."
                    + " Create it, or choose another directory with -d"
            )
        }
        if plan.settings.connection.allowsInsecure, !plan.report.isQuiet { say(Self.insecureNotice) }
        let batch = affordable(descriptors: ProcessSetup.raiseDescriptorLimit())
        if plan.settings.hasSecrets { try await plan.secrets.check(lists: plan.listPaths, urls: plan.urls) }
        let queue = try DownloadQueue(
            urls: plan.urls, settings: plan.settings, listPaths: plan.listPaths, trustsLists: plan.trustsLists,
            secrets: plan.secrets)
        let reporter = makeReporter(queue.places)
        let observer = TallyingObserver(next: reporter, places: queue.places)
        let runner = Assembly.batchRunner(batch, observer: observer)
        let signals = SignalWatcher()
        signals.watch(grace: 2) {
            queue.stop()
            runner.stop()
        }
        await runner.run { await queue.next() }
        let signal = signals.received
        var status = observer.tally.exitStatus(signal: signal)
        if let file = plan.cookieFile, let problem = CookieFile.save(plan.settings.connection.cookies, to: file) {
            say(problem)
            if status == ExitStatus.success.rawValue { status = ExitStatus.disk.rawValue }
        }
        reporter.close(exitStatus: status, interrupted: signal != nil)
        for list in queue.emptyLists where !plan.report.isQuiet {
            say("\(list) contains no URLs; nothing was downloaded from this list")
        }
        return status
    }

    /// The notice for a run without verification of certificates.
    static let insecureNotice =
        "--insecure: certificates are not verified, so anyone on the network path can read and change all data"

    private func say(_ text: String) {
        var output = OutputDescriptor(STDERR_FILENO)
        output.write("tow: \(text)\n")
    }

    /// Returns the batch options, limited to the downloads that the descriptors allow: each needs a part file, a
    /// journal and a connection.
    private func affordable(descriptors: Int) -> BatchOptions {
        var batch = plan.batch
        let most = BatchConcurrency.affordable(descriptors: descriptors)
        batch.publishing = BatchConcurrency.affordablePublishing(descriptors: descriptors)
        batch.traces = plan.report.isVerbose
        let wanted = batch.concurrency
        batch.affordable = most
        if let wanted, wanted > most, !plan.report.isQuiet {
            say(
                "the limit of \(descriptors) open files allows only \(most) downloads at once instead of \(wanted)."
                    + " To run more, raise the limit (ulimit -n)")
        }
        return batch
    }

    private func makeReporter(_ places: ListPlaces) -> Reporter {
        if plan.report.isJSON { return Reporter(JSONLog(places), descriptor: STDOUT_FILENO, interval: nil) }
        if plan.report.isQuiet { return plain(.failures) }
        if plan.report.isVerbose { return plain(plan.report.progress == .none ? .withoutProgress : .everything) }
        let style = TerminalStyle(
            environment: Environment.variables(["LC_ALL", "LC_CTYPE", "LANG", "TERM", "NO_COLOR"]))
        switch plan.report.progress {
        case .none: return plain(.withoutProgress)
        case .plain: return plain(.everything)
        case .auto where isatty(STDERR_FILENO) == 0 || Environment.isDumbTerminal: return plain(.everything)
        case .auto, .bar: return Reporter(TerminalBoard(style: style), descriptor: STDERR_FILENO, interval: 125)
        }
    }

    private func plain(_ detail: PlainLog.Detail) -> Reporter {
        Reporter(PlainLog(detail: detail), descriptor: STDERR_FILENO, interval: nil)
    }
}

/// Access to environment variables.
enum Environment {
    /// Returns the values of the named variables that are set.
    static func variables(_ names: [String]) -> [String: String] {
        var variables: [String: String] = [:]
        for name in names {
            if let value = getenv(name) { variables[name] = String(cString: value) }
        }
        return variables
    }

    /// Returns whether the terminal cannot move its cursor, such as the terminal of an editor.
    static var isDumbTerminal: Bool { ["", "dumb"].contains(variables(["TERM"])["TERM", default: ""]) }
}
