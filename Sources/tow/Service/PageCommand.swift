import ArgumentParser
import Glibc
import TowlineClient
import TowlineCore
import TowlineWire

struct PageCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "page",
        abstract: "Print a link to the web page of towd that signs a browser in.",
        discussion: """
            The link signs in once, within an hour. The access token is not part of the link, so the link in the \
            history of a browser is worth nothing. If towd is not running, 'tow page' starts it.
            """)

    @OptionGroup(title: "Service")
    var service: ServiceOptions

    func run() async throws {
        let (pages, code) = try await service.askStarting { client in
            (try await client.settings.pages, try await client.makeSignInCode().code)
        }
        guard !pages.isEmpty else {
            throw TowlineError(
                .commandFailed,
                "towd serves no web page. Its port may be in use; start towd with --listen and a free HOST:PORT")
        }
        var output = OutputDescriptor(STDOUT_FILENO)
        output.write(pages.map { TerminalSafeText.make("\($0)#code=\(code)") + "\n" }.joined())
    }
}
