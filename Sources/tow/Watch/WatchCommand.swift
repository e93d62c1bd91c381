import ArgumentParser
import Glibc
import TowlineCore
import TowlineWire

/// `tow watch`.
struct WatchCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "watch",
        abstract: "Shows what towd does, live, on the whole terminal.",
        discussion: """
            Keys: q quits. Arrows or j and k, Page Up and Page Down, Home and End select. p or the space bar pauses \
            and resumes, r tries again, c cancels and x removes, both after a question. Ctrl-L draws anew.

            Nothing stops when it is left. When towd stops it says so and waits for it.

            Examples:
              tow watch
              tow watch --only queued,active,waiting
            """
    )

    @OptionGroup
    var selection: ListSelection

    @OptionGroup(title: "Service")
    var service: ServiceOptions

    /// For one answer: after that it is asked again.
    private static let timeout = Duration.seconds(15)
    /// And for the first, before keys do anything.
    private static let firstTimeout = Duration.seconds(3)

    func run() async throws {
        guard TerminalWindow.isTerminal(STDIN_FILENO), TerminalWindow.isTerminal(STDOUT_FILENO),
            !Environment.isDumbTerminal
        else {
            throw UsageProblem(
                "This needs a terminal that can move its cursor; 'tow list' works everywhere.", in: Self.self)
        }
        let socket = service.places.socket
        let client = ServiceClient(socket: socket, timeout: Self.timeout)
        do {
            // What it does not take, such as a state that there is not, is said as by every other command.
            let first = ServiceClient(socket: socket, timeout: Self.firstTimeout)
            _ = try await first.page(selection.query(limit: 1, cursor: nil))
        } catch is ServiceClient.NotRunning {
            // It may come.
        } catch let error as TowlineError where error.code == .transient {
            // It may answer later.
        }
        let status = await WatchRun(client: client, selection: selection, style: .forOutput(STDOUT_FILENO)).perform()
        if status != ExitStatus.success.rawValue { throw ExitCode(status) }
    }
}
