import ArgumentParser
import Glibc
import TowlineCore

struct StatusCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "status",
        abstract: "Show how much of a file is downloaded.",
        discussion: """
            Shows the URL, the size, the data downloaded so far, and what happens when the same 'tow get' command \
            is run again. The command only reads NAME.tow and NAME.tow-journal. It can be used while the download runs.

            Examples:
              tow status image.iso
              tow status --json image.iso

            Exit status:
              0  the file is an unfinished or a finished download
              1  the file exists, but tow has no record of downloading it
              2  an argument is not valid
              6  the file does not exist or cannot be read
            """
    )

    @Argument(help: "File name of the download: NAME, NAME.tow or NAME.tow-journal.", completion: .file())
    var file: String

    @Flag(help: "Print one JSON object to standard output.")
    var json = false

    func run() throws {
        // Resolves links in the same way as `tow get -o LINK`.
        let file = (try? LinkTarget.resolve(file)) ?? file
        // The name of a finished file may also end in .tow.
        var status = try? Assembly.status(path: file)
        if case .finished? = status {} else { status = try Assembly.status(path: Self.finalPath(file)) }
        guard let status else { return }
        var output = OutputDescriptor(STDOUT_FILENO)
        let style = TerminalStyle.forOutput(STDOUT_FILENO)
        output.write(json ? status.json.closed + "\n" : status.text(style: style))
        if status.exitStatus != .success { throw ExitCode(status.exitStatus.rawValue) }
    }

    /// Returns the final path from itself, or from the path of the part file or the journal.
    static func finalPath(_ path: String) -> String {
        for suffix in [".tow-old-journal", ".tow-journal", ".tow-old", ".tow"] where path.hasSuffix(suffix) {
            return String(path.dropLast(suffix.count))
        }
        return path
    }
}
