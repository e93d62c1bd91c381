import ArgumentParser

/// A command line that parses but is not valid. Printed in the format of the parser's errors.
struct UsageProblem: Error {
    /// The message, the usage of the command and a pointer to its help.
    let text: String

    init(_ message: String, in command: any ParsableCommand.Type) {
        text = """
            Error: \(message)
            Usage: \(TowCommand.usageString(for: command))
              See 'tow \(command._commandName) --help' for more information.
            """
    }
}
