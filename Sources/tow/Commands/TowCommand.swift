import ArgumentParser
import TowlineCore

struct TowCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "tow",
        abstract: "Download files over unreliable networks and resume interrupted downloads.",
        discussion: """
            A download can be interrupted at any time: by Ctrl-C, a crash, a power failure or a network change. Run \
            the same command again, and the download resumes.

            Examples:
              tow get https://example.org/image.iso    download a file, or resume it
              tow get -i urls.txt -d downloads         download a list of URLs
              tow status image.iso                     show an unfinished download
              tow add https://example.org/image.iso    download in the background

            'tow help get' lists the options of 'tow get'. The full reference is 'man tow'.
            """,
        version: "tow \(TowlineVersion.text)\n\(Assembly.libraries)",
        groupedSubcommands: [
            CommandGroup(name: "Download", subcommands: [GetCommand.self, StatusCommand.self, ProbeCommand.self]),
            CommandGroup(
                name: "Background download",
                subcommands: [
                    AddCommand.self, ListCommand.self, WatchCommand.self, ShowCommand.self, PauseCommand.self,
                    ResumeCommand.self,
                    CancelCommand.self, RetryCommand.self, RemoveCommand.self, MoveCommand.self,
                    LimitCommand.self,
                    PageCommand.self, ServiceCommand.self,
                ]),
        ]
    )

    static var names: [String] { configuration.subcommands.compactMap { $0.configuration.commandName } + ["help"] }
}
