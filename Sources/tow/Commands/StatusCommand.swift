import ArgumentParser
import Glibc
import TowlineCore

/// `tow status`.
struct StatusCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "status",
        abstract: "Tells what an unfinished download holds, or that it is finished.",
        discussion: """
            Reads the journal beside the file and changes nothing, also while the download runs.

            Exit status: 0 an unfinished or a finished download; 1 a file that nothing is known of; 2 usage; 6 \
            nothing is there, or it cannot be read.

            Examples:
              tow status image.iso
              tow status --json image.iso
            """
    )

    @Argument(help: "The file that is being downloaded, or its NAME.tow or NAME.tow-journal.", completion: .file())
    var file: String

    @Flag(help: "One JSON object on standard output.")
    var json = false

    func run() throws {
        let status = try Assembly.status(path: Self.finalPath(file))
        var output = OutputDescriptor(STDOUT_FILENO)
        let style = TerminalStyle.forOutput(STDOUT_FILENO)
        output.write(json ? status.json.closed + "\n" : status.text(style: style))
        if status.exitStatus != .success { throw ExitCode(status.exitStatus.rawValue) }
    }

    /// The final name, from it or from one of the two beside it.
    static func finalPath(_ path: String) -> String {
        for suffix in [".tow-journal", ".tow"] where path.hasSuffix(suffix) {
            return String(path.dropLast(suffix.count))
        }
        return path
    }
}
