import FaultServer
import Glibc

/// The program `fault-server`: a ``FaultServer`` in its own process, for tests that kill the downloading process.
/// Prints `listening PORT` when ready, and runs until SIGTERM or SIGINT.
@main
struct Main {
    static func main() async {
        // Blocked before any other thread starts, so that `sigwait` alone receives them.
        var signals = sigset_t()
        sigemptyset(&signals)
        sigaddset(&signals, SIGTERM)
        sigaddset(&signals, SIGINT)
        pthread_sigmask(SIG_BLOCK, &signals, nil)
        signal(SIGPIPE, SIG_IGN)
        do {
            let arguments = try Arguments(Array(CommandLine.arguments.dropFirst()))
            if arguments.listsFaults { return Fault.all.keys.sorted().forEach { print($0) } }
            let server = try await FaultServer.start(arguments.resources, options: arguments.options)
            print("listening \(server.port)")
            fflush(nil)
            if arguments.stopsAtEndOfInput { stopAtEndOfInput() }
            waitForSignal(signals)
            await server.stop()
        } catch let problem as Arguments.Problem {
            complain("fault-server: \(problem.text)\n\(Arguments.usage)\n")
            exit(2)
        } catch {
            complain("fault-server: \(error)\n")
            exit(1)
        }
    }

    /// Blocks the main thread; the server runs on others.
    private static func waitForSignal(_ signals: sigset_t) {
        var signals = signals
        var received: CInt = 0
        sigwait(&signals, &received)
    }

    /// Starts a thread that raises SIGTERM for this process when standard input ends, for example when the parent
    /// process dies.
    private static func stopAtEndOfInput() {
        var thread = pthread_t()
        pthread_create(
            &thread, nil,
            { _ in
                var byte: UInt8 = 0
                while read(STDIN_FILENO, &byte, 1) > 0 {}
                kill(getpid(), SIGTERM)
                return nil
            }, nil)
    }

    private static func complain(_ text: String) {
        let bytes = Array(text.utf8)
        // Standard error may be closed; the exit status also reports the failure.
        _ = bytes.withUnsafeBytes { write(STDERR_FILENO, $0.baseAddress, $0.count) }
    }
}
