import ArgumentParser
import TowlineCore

/// `tow`.
struct TowCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "tow",
        abstract: "Downloads files over bad networks, and never fetches a byte twice without need.",
        discussion: """
            Start a download, kill it, pull the plug, change networks, and run the same command again: it goes on \
            where it was.

              tow get https://example.org/image.iso

            'tow help get' lists the options. Full reference: man tow.
            """,
        version: "tow " + TowlineVersion.text,
        groupedSubcommands: [
            CommandGroup(name: "Now", subcommands: [GetCommand.self, StatusCommand.self, ProbeCommand.self]),
            CommandGroup(
                name: "In the background, by towd",
                subcommands: [
                    AddCommand.self, ListCommand.self, WatchCommand.self, ShowCommand.self, PauseCommand.self,
                    ResumeCommand.self,
                    CancelCommand.self, RetryCommand.self, RemoveCommand.self, LimitCommand.self,
                    ServiceCommand.self,
                ]),
        ]
    )

    /// What its commands are called.
    static var names: [String] { configuration.subcommands.compactMap { $0.configuration.commandName } + ["help"] }
}
