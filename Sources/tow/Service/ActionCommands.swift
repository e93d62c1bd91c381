import ArgumentParser
import Glibc
import TowlineClient
import TowlineCore
import TowlineWire

struct NamedDownloads: ParsableArguments {
    static let help = ArgumentHelp(
        "IDs or file names of the downloads. The first or last 4 or more characters of an ID are enough.",
        valueName: "id")

    @Argument(help: Self.help, completion: DownloadCompletion.kind)
    var ids: [String]

    @Flag(help: "Print one JSON object per line to standard output.")
    var json = false

    @OptionGroup(title: "Service")
    var service: ServiceOptions

    /// Calls `body` for each ID, as `EachDownload.perform`.
    func each(_ body: (ServiceClient, String) async throws -> Wire.Download?) async throws {
        try await EachDownload(ids: ids, json: json, service: service).perform(body)
    }
}

/// The downloads of a command that also accepts all downloads.
struct SomeDownloads: ParsableArguments {
    @Argument(help: NamedDownloads.help, completion: DownloadCompletion.kind)
    var ids: [String] = []

    @Flag(help: "Print one JSON object per line to standard output.")
    var json = false

    @OptionGroup(title: "Service")
    var service: ServiceOptions

    /// Calls `body` for each ID, as `EachDownload.perform`.
    func each(_ body: (ServiceClient, String) async throws -> Wire.Download?) async throws {
        try await EachDownload(ids: ids, json: json, service: service).perform(body)
    }

    /// Throws a usage error unless either IDs or one of the flags for many downloads were given.
    func check(_ flags: [String: Bool], in command: any ParsableCommand.Type) throws {
        let count = flags.values.count { $0 } + (ids.isEmpty ? 0 : 1)
        guard count != 1 else { return }
        let names = flags.keys.sorted().joined(separator: " or ")
        throw UsageProblem("Give either IDs of downloads, or \(names).", in: command)
    }

    /// Carries out the action for all downloads in one request, and prints `text`.
    func actOnAll(_ action: String, _ text: String) async throws {
        try await service.ask { try await $0.actOnAll(action, group: nil) }
        if !json {
            var output = OutputDescriptor(STDOUT_FILENO)
            output.write(text + "\n")
        }
    }
}

/// A command that is carried out for several downloads, one after another.
struct EachDownload {
    let ids: [String]
    let json: Bool
    let service: ServiceOptions

    /// Calls `body` for each ID and prints the returned download. Continues after an error; throws the last one at the
    /// end.
    func perform(_ body: (ServiceClient, String) async throws -> Wire.Download?) async throws {
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

    @Flag(help: "Pause all downloads that are queued, running or waiting.")
    var all = false

    @OptionGroup var downloads: SomeDownloads

    func run() async throws {
        try downloads.check(["--all": all], in: Self.self)
        guard !all else { return try await downloads.actOnAll("pause-all", "All downloads are paused.") }
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

    @Flag(help: "Continue all paused downloads. Failed downloads stay as they are.")
    var all = false

    @OptionGroup var downloads: SomeDownloads

    func run() async throws {
        try downloads.check(["--all": all], in: Self.self)
        guard !all else { return try await downloads.actOnAll("resume-all", "All paused downloads continue.") }
        try await downloads.each { try await $0.act("resume", on: $1) }
    }
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

    @Flag(help: "Remove all finished downloads.")
    var finished = false

    @Flag(help: "Remove all downloads, also running ones.")
    var all = false

    @OptionGroup var downloads: SomeDownloads

    func run() async throws {
        try downloads.check(["--all": all, "--finished": finished], in: Self.self)
        guard downloads.ids.isEmpty else {
            return try await downloads.each { client, id in
                try await client.remove(id, deletingFiles: files)
                return nil
            }
        }
        let count = try await downloads.service.ask { try await removeMany($0) }
        guard !downloads.json else { return }
        var output = OutputDescriptor(STDOUT_FILENO)
        output.write("Removed \(count) download\(count == 1 ? "" : "s") from the list.\n")
    }

    /// The number of concurrent requests. `towd` writes the changes of concurrent requests to its list together.
    private static let width = 16

    /// Removes all downloads that are selected when this function is called, and returns their number.
    private func removeMany(_ client: ServiceClient) async throws -> Int {
        let query = [("limit", "1000"), ("order", "added")] + (all ? [] : [("state", "finished")])
        var ids: [String] = []
        var page = try await client.page(query)
        ids += page.downloads.map(\.id)
        while let next = page.next {
            page = try await client.page(query + [("cursor", next)])
            ids += page.downloads.map(\.id)
        }
        let deletesFiles = files
        return try await withThrowingTaskGroup(of: Bool.self) { group in
            var removed = 0
            for (number, id) in ids.enumerated() {
                if number >= Self.width, try await group.next() == true { removed += 1 }
                group.addTask { try await Self.remove(id, client, deletesFiles) }
            }
            for try await isRemoved in group where isRemoved { removed += 1 }
            return removed
        }
    }

    /// Returns `false` if the download was removed by someone else meanwhile.
    private static func remove(_ id: String, _ client: ServiceClient, _ deletesFiles: Bool) async throws -> Bool {
        do {
            try await client.remove(id, deletingFiles: deletesFiles)
            return true
        } catch let error as TowlineError where error.code == .unknownDownload {
            return false
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
