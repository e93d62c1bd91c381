import ArgumentParser
import Glibc
import TowlineCore
import TowlineWire

/// The selection and the order of downloads from the list.
struct ListSelection: ParsableArguments {
    private static let states = ["active"] + Wire.State.allCases.map(\.rawValue)
    private static let orders = ["queue", "added", "name", "size", "state", "ended"]

    @Option(
        help: ArgumentHelp(
            """
            Show only downloads in these states, separated by commas: queued, connecting, downloading, verifying, \
            publishing, waiting, paused, finished, failed, cancelled. The word active stands for connecting, \
            downloading, verifying and publishing. The word failed includes follow-up-failed: the file is complete, \
            but it was not unpacked.
            """, valueName: "state,…"),
        completion: .list(Self.states))
    var only: String?

    @Option(help: ArgumentHelp("Show only downloads of this group.", valueName: "name"))
    var group: String?

    @Option(help: ArgumentHelp("Show only downloads whose name or URL contains this text.", valueName: "text"))
    var text: String?

    @Option(
        help: ArgumentHelp("Sort by queue, added, name, size, state or ended. (default: queue)", valueName: "order"),
        completion: .list(Self.orders))
    var order: String?

    @Flag(help: "Reverse the sort order.")
    var descending = false

    /// Checks the values here, because messages of the service name the parameters of its API.
    func validate() throws {
        let words = only?.split(separator: ",", omittingEmptySubsequences: false) ?? []
        guard words.allSatisfy({ Self.states.contains($0.filter { !$0.isWhitespace }.lowercased()) }) else {
            throw ValidationError(
                "--only: expected one or more of these, separated by commas: \(Self.states.joined(separator: ", ")).")
        }
        if let order, !Self.orders.contains(order) {
            throw ValidationError("--order: expected one of \(Self.orders.joined(separator: ", ")).")
        }
        for (option, value) in [("--group", group), ("--text", text)] where value?.isEmpty == true {
            throw ValidationError("\(option): the value is empty. Leave out the option to list all downloads.")
        }
    }

    /// Returns the query parameters for a page of the selected downloads.
    ///
    /// - Parameters:
    ///   - cursor: the end of the previous page in the same direction; `nil` for the first page.
    ///   - isReversed: `true` to read from the end of the list to its beginning.
    func query(limit: Int, cursor: String?, isReversed: Bool = false) -> [(String, String)] {
        var query = [("descending", "\(descending != isReversed)"), ("limit", "\(limit)")]
        let given = [("state", only), ("group", group), ("text", text), ("order", order), ("cursor", cursor)]
        for (name, value) in given {
            if let value { query.append((name, value)) }
        }
        return query
    }

    var isFilter: Bool { only != nil || group != nil || text != nil }
}

struct ListCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "list",
        abstract: "List the downloads of towd, one per line.",
        discussion: """
            The first column is the end of the download's ID. Commands that take an ID accept its first or last 4 or \
            more characters, or the name of the file, as long as only one download matches.

            Examples:
              tow list
              tow list --only active,waiting
              tow list --json | jq -r 'select(.state == "failed") | .url'
            """
    )

    @OptionGroup
    var selection: ListSelection

    @Option(name: .shortAndLong, help: ArgumentHelp("Maximum number of downloads to list.", valueName: "n"))
    var number: Int?

    @Flag(help: "Print one JSON object per line to standard output.")
    var json = false

    @OptionGroup(title: "Service")
    var service: ServiceOptions

    func run() async throws {
        if let number, number < 1 { throw UsageProblem("--number must be at least 1.", in: Self.self) }
        var left = number ?? Int.max
        var cursor: String?
        var isEmpty = true
        repeat {
            let part = selection.query(limit: min(left, 1000), cursor: cursor)
            let page = try await service.ask { try await $0.page(part) }
            try ServiceReport(json: json).write(page.downloads)
            isEmpty = isEmpty && page.downloads.isEmpty
            left -= page.downloads.count
            cursor = page.next
        } while cursor != nil && left > 0
        guard isEmpty, !json, isatty(STDERR_FILENO) == 1 else { return }
        var errors = OutputDescriptor(STDERR_FILENO)
        errors.write(selection.isFilter ? "No downloads match the filter.\n" : "The list of downloads is empty.\n")
    }
}

struct ShowCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "show", abstract: "Show details and history of a download, and why it waits.")

    @Argument(
        help: ArgumentHelp(
            "ID or file name of the download. The first or last 4 or more characters of the ID are enough.",
            valueName: "id"),
        completion: DownloadCompletion.kind)
    var id: String

    @Flag(help: "Print one JSON object to standard output.")
    var json = false

    @OptionGroup(title: "Service")
    var service: ServiceOptions

    func run() async throws {
        let download = try await service.ask { try await $0.download(id) }
        guard !json else { return try ServiceReport(json: true).write([download]) }
        let notes = try await service.ask { try await $0.timeline(id) }
        let lines = DownloadLines(style: .forOutput(STDOUT_FILENO))
        var output = OutputDescriptor(STDOUT_FILENO)
        output.write(lines.details(download) + (notes.isEmpty ? "" : "\n" + lines.timeline(notes)))
    }
}
