import ArgumentParser
import Glibc
import TowlineCore
import TowlineWire

/// The downloads that a command is about.
struct NamedDownloads: ParsableArguments {
    @Argument(
        help: ArgumentHelp("Names, or the beginnings or ends of them.", valueName: "id"),
        completion: DownloadCompletion.kind)
    var ids: [String]

    @Flag(help: "One JSON object a line on standard output.")
    var json = false

    @OptionGroup(title: "Service")
    var service: ServiceOptions

    /// Does it to each, and goes on after one that it cannot be done to.
    func each(_ body: (ServiceClient, String) async throws -> Wire.Download?) async throws {
        var failure: TowlineError?
        for id in ids {
            do {
                if let download = try await service.ask({ try await body($0, id) }) {
                    try ServiceReport(json: json).write([download])
                }
            } catch let error as TowlineError {
                var output = OutputDescriptor(STDERR_FILENO)
                if let failure { output.write("tow: \(TerminalSafeText.make(failure.message))\n") }
                failure = error
            }
        }
        if let failure { throw failure }
    }
}

/// `tow pause`.
struct PauseCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "pause", abstract: "Stops downloads and keeps every byte, also over a restart of towd.")

    @OptionGroup var downloads: NamedDownloads

    func run() async throws {
        try await downloads.each { client, id in
            var download = try await client.act("pause", on: id)
            // What is under way comes to rest within moments; then it is told as it is.
            for _ in 0..<40 where !download.state.isOver && download.state != Wire.State.paused {
                try await Task.sleep(for: .milliseconds(50))
                download = try await client.download(id)
            }
            return download
        }
    }
}

/// `tow resume`.
struct ResumeCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "resume", abstract: "Lets downloads go on that are paused or failed, and those that wait now.")

    @OptionGroup var downloads: NamedDownloads

    func run() async throws { try await downloads.each { try await $0.act("resume", on: $1) } }
}

/// `tow cancel`.
struct CancelCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "cancel",
        abstract: "Gives downloads up: what was fetched is removed, the entry stays in the list.")

    @OptionGroup var downloads: NamedDownloads

    func run() async throws { try await downloads.each { try await $0.act("cancel", on: $1) } }
}

/// `tow retry`.
struct RetryCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "retry", abstract: "Begins again what failed or was cancelled.")

    @OptionGroup var downloads: NamedDownloads

    func run() async throws { try await downloads.each { try await $0.act("retry", on: $1) } }
}

/// `tow remove`.
struct RemoveCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "remove",
        abstract: "Takes downloads off the list; what is on disk stays, unless --files.")

    @Flag(help: "Remove their files too, finished or not. One that was changed since stays.")
    var files = false

    @OptionGroup var downloads: NamedDownloads

    func run() async throws {
        try await downloads.each { client, id in
            try await client.remove(id, deletingFiles: files)
            return nil
        }
    }
}

/// `tow limit`.
struct LimitCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "limit",
        abstract: "Changes how fast towd downloads, and how many at once; without options tells it.",
        discussion: """
            In force at once, and kept.

            Examples:
              tow limit 2M
              tow limit none
              tow limit 500K 7KQ2VX
              tow limit --running 10 --per-host 4
            """
    )

    @Argument(help: ArgumentHelp("Bytes per second, such as 2M; 'none' for no limit.", valueName: "rate"))
    var rate: String?

    @Argument(
        help: ArgumentHelp("Only for these downloads; otherwise for all together.", valueName: "id"),
        completion: DownloadCompletion.kind)
    var ids: [String] = []

    @Option(help: ArgumentHelp("Downloads that run at once.", valueName: "n"))
    var running: Int?

    @Option(help: ArgumentHelp("And for each host.", valueName: "n"))
    var perHost: Int?

    @OptionGroup(title: "Service")
    var service: ServiceOptions

    func run() async throws {
        var limit: Int64?
        do {
            limit = try rate.map { text throws(TowlineError) in text == "none" ? 0 : try OptionValue.rate(text) }
        } catch {
            throw UsageProblem("the rate: \(error.message)", in: Self.self)
        }
        if let limit, !ids.isEmpty {
            try await set(limit)
            // Of all together nothing was asked.
            if running == nil, perHost == nil { return }
        }
        var change = Wire.SettingsChange()
        if ids.isEmpty, let limit { change.rateLimit = .set(limit) }
        change.maximumRunning = running
        change.maximumRunningPerHost = perHost
        let wanted = change
        let settings = try await service.ask { try await $0.change(wanted) }
        var output = OutputDescriptor(STDOUT_FILENO)
        let total = settings.rateLimit == 0 ? "none" : Phrases.rate(Double(settings.rateLimit))
        output.write(
            """
            rate      \(total)
            running   \(settings.maximumRunning)
            per host  \(settings.maximumRunningPerHost)

            """)
    }

    private func set(_ limit: Int64) async throws {
        var change = Wire.Change()
        change.rateLimit = limit == 0 ? .clear : .set(limit)
        let wanted = change
        var output = OutputDescriptor(STDOUT_FILENO)
        for id in ids {
            let download = try await service.ask { try await $0.change(id, wanted) }
            let rate = limit == 0 ? "none" : Phrases.rate(Double(limit))
            output.write("rate      \(rate) for \(DownloadLines.name(download))\n")
        }
    }
}
