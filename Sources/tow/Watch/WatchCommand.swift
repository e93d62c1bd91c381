import ArgumentParser
import Glibc
import TowlineClient
import TowlineCore
import TowlineWire

struct WatchCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "watch",
        abstract: "Show the downloads of towd live in the terminal.",
        discussion: """
            Keys: q quits. The arrow keys, j and k, Page Up, Page Down, Home and End move the selection. p or the \
            space bar pauses or resumes the selected download, r retries it, c cancels it, and x removes it from the \
            list. c and x ask for confirmation first. Ctrl-L redraws the screen.

            Quitting does not stop any download. If towd stops, 'tow watch' shows a message and waits for its restart.

            Examples:
              tow watch
              tow watch --only queued,active,waiting
            """
    )

    @OptionGroup
    var selection: ListSelection

    @OptionGroup(title: "Service")
    var service: ServiceOptions

    /// The timeout for one response. After it, the request is repeated.
    private static let timeout = Duration.seconds(15)
    /// The timeout for the first response. Keys have no effect before it.
    private static let firstTimeout = Duration.seconds(3)

    func run() async throws {
        guard TerminalWindow.isTerminal(STDIN_FILENO), TerminalWindow.isTerminal(STDOUT_FILENO),
            !Environment.isDumbTerminal
        else {
            throw UsageProblem(
                "'tow watch' needs a terminal that can move the cursor. Use 'tow list' instead.", in: Self.self)
        }
        let socket = service.places.socket
        let client = ServiceClient(socket: socket, timeout: Self.timeout)
        do {
            // An error that towd reports, such as an unknown state in the filter, ends this command as it ends every
            // other command.
            let first = ServiceClient(socket: socket, timeout: Self.firstTimeout)
            _ = try await first.page(selection.query(limit: 1, cursor: nil))
        } catch is ServiceClient.NotRunning {
            // towd may start later.
        } catch let error as TowlineError where error.code == .transient {
            // towd may respond later.
        }
        let status = await WatchRun(client: client, selection: selection, style: .forOutput(STDOUT_FILENO)).perform()
        if status != ExitStatus.success.rawValue { throw ExitCode(status) }
    }
}
