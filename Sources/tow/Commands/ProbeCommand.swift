import ArgumentParser
import Glibc
import TowlineCore
import TowlineEngine

struct ProbeCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "probe",
        abstract: "Show what a server offers for a URL, without downloading the file.",
        discussion: """
            Sends the same request as 'tow get', reads the response headers and closes the connection. Shows the \
            file name, the size, redirects, and whether an interrupted download can be resumed.

            Examples:
              tow probe https://example.org/image.iso
              tow probe --json https://example.org/image.iso
            """
    )

    @Argument(help: ArgumentHelp("URL to check (http:// or https://).", valueName: "url"))
    var url: String

    @Flag(help: "Print one JSON object to standard output.")
    var json = false

    @OptionGroup(title: "Request")
    var request: RequestOptions

    @OptionGroup(title: "Connection")
    var route: RouteOptions

    @OptionGroup(title: "Connection")
    var connection: ConnectionOptionGroup

    func run() async throws {
        var settings = DownloadSettings()
        try request.apply(to: &settings)
        try route.apply(to: &settings)
        try connection.apply(to: &settings)
        if settings.connection.allowsInsecure {
            var errors = OutputDescriptor(STDERR_FILENO)
            errors.write("tow: \(GetRun.insecureNotice)\n")
        }
        let options = try settings.options(for: HTTPURL(typed: url))
        let offer = try await Assembly.probe(options)
        var output = OutputDescriptor(STDOUT_FILENO)
        output.write(json ? offer.json.closed + "\n" : offer.text(style: .forOutput(STDOUT_FILENO)))
    }
}
