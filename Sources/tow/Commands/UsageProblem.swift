import ArgumentParser

/// A command line that parses and makes no sense. Said as the parser says what it finds itself.
struct UsageProblem: Error {
    /// What is wrong, how the command is used, and where there is more.
    let text: String

    init(_ message: String, in command: any ParsableCommand.Type) {
        text = """
            Error: \(message)
            Usage: \(TowCommand.usageString(for: command))
              See 'tow \(command._commandName) --help' for more information.
            """
    }
}
