import ArgumentParser
import Glibc
import TowlineClient
import TowlineCore
import TowlineWire

struct NamedDownloads: ParsableArguments {
    @Argument(
        help: ArgumentHelp(
            "IDs of the downloads. The first or last 4 or more characters of an ID are enough.", valueName: "id"),
        completion: DownloadCompletion.kind)
    var ids: [String]

    @Flag(help: "Print one JSON object per line to standard output.")
    var json = false

    @OptionGroup(title: "Service")
    var service: ServiceOptions

    /// Calls `body` for each ID and prints the returned download. Continues after an error; throws the last one at the
    /// end.
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

struct PauseCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "pause",
        abstract: "Pause downloads and keep their data. They stay paused when towd restarts.")

    @OptionGroup var downloads: NamedDownloads

    func run() async throws {
        try await downloads.each { client, id in
            var download = try await client.act("pause", on: id)
            // A running download stops within moments. Wait up to 2 s, to print its final state.
            for _ in 0..<40 where !download.state.isOver && download.state != Wire.State.paused {
                try await Task.sleep(for: .milliseconds(50))
                download = try await client.download(id)
            }
            return download
        }
    }
}

struct ResumeCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "resume",
        abstract: "Continue paused or failed downloads with the data downloaded so far.",
        discussion: """
            A waiting download retries immediately. A cancelled download cannot be resumed because its data was \
            deleted; 'tow retry' starts it again.
            """)

    @OptionGroup var downloads: NamedDownloads

    func run() async throws { try await downloads.each { try await $0.act("resume", on: $1) } }
}

struct CancelCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "cancel",
        abstract: "Cancel downloads and delete their downloaded data. They stay in the list.")

    @OptionGroup var downloads: NamedDownloads

    func run() async throws { try await downloads.each { try await $0.act("cancel", on: $1) } }
}

struct RetryCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "retry",
        abstract: "Start failed or cancelled downloads again.",
        discussion: """
            A cancelled download starts from the beginning because its data was deleted. A failed download continues \
            with the data downloaded so far, as with 'tow resume'. If only the follow-up action (such as unpacking) \
            failed, only this action runs again.
            """)

    @OptionGroup var downloads: NamedDownloads

    func run() async throws { try await downloads.each { try await $0.act("retry", on: $1) } }
}

struct RemoveCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "remove",
        abstract: "Remove downloads from the list. Their files are kept unless --files is given.")

    @Flag(help: "Also delete the downloaded files, finished or not. A finished file that was modified later is kept.")
    var files = false

    @OptionGroup var downloads: NamedDownloads

    func run() async throws {
        try await downloads.each { client, id in
            try await client.remove(id, deletingFiles: files)
            return nil
        }
    }
}

struct LimitCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "limit",
        abstract: "Set or print the rate limit of towd and how many downloads run at the same time.",
        discussion: """
            New limits apply immediately and are saved. Without arguments, the current limits are printed.

            Examples:
              tow limit 2M
              tow limit none
              tow limit 500K 7KQ2VX
              tow limit --running 10 --per-host 4
            """
    )

    @Argument(
        help: ArgumentHelp(
            "Maximum bytes per second, such as 2M; 'none' removes the limit. K, M and G are powers of 1024.",
            valueName: "rate"))
    var rate: String?

    @Argument(
        help: ArgumentHelp(
            "IDs of downloads; the rate applies to each of them. (default: one limit for all downloads together)",
            valueName: "id"),
        completion: DownloadCompletion.kind)
    var ids: [String] = []

    @Option(help: ArgumentHelp("Maximum number of downloads that run at the same time.", valueName: "n"))
    var running: Int?

    @Option(help: ArgumentHelp("Maximum number of downloads that run at the same time from one host.", valueName: "n"))
    var perHost: Int?

    @OptionGroup(title: "Service")
    var service: ServiceOptions

    func run() async throws {
        var limit: Int64?
        do {
            limit = try rate.map { text throws(TowlineError) in text == "none" ? 0 : try OptionValue.rate(text) }
        } catch {
            throw UsageProblem("Invalid rate: \(error.message)", in: Self.self)
        }
        if let limit, !ids.isEmpty {
            try await set(limit)
            // No limits of all downloads together were given.
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
            rate limit    \(total)
            max running   \(settings.maximumRunning)
            max per host  \(settings.maximumRunningPerHost)

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
            output.write("rate limit    \(rate) for \(DownloadLines.name(download))\n")
        }
    }
}
