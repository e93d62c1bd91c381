import ArgumentParser
import TowlineCore
import TowlineWire

struct MoveCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "move",
        abstract: "Tell towd that the files of downloads were moved to another directory.",
        discussion: """
            Move or rename the directory first: 'tow move' moves no files. The part files of unfinished downloads \
            (all files that begin with NAME.tow) belong in the new directory too. Downloads that failed because their \
            directory was missing then resume.

            The new directory must be inside the downloads directory of towd.

            Example:
              tow move 7KQ2VX M3X8TA films
            """)

    @Argument(
        help: ArgumentHelp("IDs of the downloads, and then the new directory.", valueName: "id-or-directory"),
        completion: DownloadCompletion.kind)
    var words: [String]

    @Flag(help: "Print one JSON object per line to standard output.")
    var json = false

    @OptionGroup(title: "Service")
    var service: ServiceOptions

    func run() async throws {
        guard words.count > 1, let directory = words.last else {
            throw UsageProblem("Give the IDs of the downloads, and then the new directory.", in: Self.self)
        }
        try await EachDownload(ids: words.dropLast(), json: json, service: service).perform { client, id in
            var change = Wire.Change()
            change.directory = directory
            let download = try await client.change(id, change)
            let isLost = download.error?.code == TowlineError.Code.unusableDestination.description
            return download.state == .failed && isLost ? try await client.act("retry", on: id) : download
        }
    }
}
