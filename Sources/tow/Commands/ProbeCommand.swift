import ArgumentParser
import Glibc
import TowlineCore
import TowlineEngine

/// `tow probe`.
struct ProbeCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "probe",
        abstract: "Tells what a server offers for a URL, without downloading it.",
        discussion: """
            Asks as a download would, reads the head of the answer and closes. Tells whether an interrupted download \
            of it could go on, and what that would rest on.

            Examples:
              tow probe https://example.org/image.iso
              tow probe --json https://example.org/image.iso
            """
    )

    @Argument(help: ArgumentHelp("http or https.", valueName: "url"))
    var url: String

    @Flag(help: "One JSON object on standard output.")
    var json = false

    @OptionGroup(title: "Request")
    var request: RequestOptions

    @OptionGroup(title: "Connection")
    var connection: ConnectionOptionGroup

    func run() async throws {
        var settings = DownloadSettings()
        try request.apply(to: &settings)
        try connection.apply(to: &settings)
        let options = try settings.options(for: HTTPURL(parsing: url))
        let offer = try await Assembly.probe(options)
        var output = OutputDescriptor(STDOUT_FILENO)
        output.write(json ? offer.json.closed + "\n" : offer.text(style: .forOutput(STDOUT_FILENO)))
    }
}
