import Glibc
import TowlineCore
import TowlineCurl
import TowlineDisk
import TowlineEngine

/// The program `crash-victim URL DIRECTORY NAME CONNECTIONS STRIKE NUMBER`: it runs a download like `tow get`, during
/// which a file system call fails or kills the process. Prints `splices M calls N` and exits with the download's
/// status.
@main
struct Main {
    static func main() async {
        signal(SIGPIPE, SIG_IGN)
        let words = CommandLine.arguments
        guard words.count == 7, let connections = Int(words[4]), let kind = Strike.Kind(rawValue: words[5]),
            let number = Int(words[6])
        else {
            say(STDERR_FILENO, "usage: crash-victim URL DIRECTORY NAME CONNECTIONS STRIKE NUMBER")
            exit(ExitStatus.usage.rawValue)
        }
        let syscall = StrikingSyscall(Strike(kind: kind, number: number))
        let status = await run(words[1], words[2], words[3], connections, syscall)
        say(STDOUT_FILENO, "splices \(syscall.splices) calls \(syscall.calls)")
        // Like tow: exit handlers of libraries would free memory that engine threads still use.
        _exit(status.rawValue)
    }

    private static func run(
        _ url: String, _ directory: String, _ name: String, _ connections: Int, _ syscall: StrikingSyscall
    ) async -> ExitStatus {
        do throws(TowlineError) {
            var options = DownloadOptions(
                url: try HTTPURL(parsing: url), target: .file(directory: directory, name: name))
            options.connections = connections
            options.maximumTries = 4
            options.retryWait = .milliseconds(10)
            let services = TransferServices(
                transport: CurlTransport(), storage: FileStorage(syscall: syscall), board: HostBoard(),
                limiter: RateLimiter(rate: 0))
            _ = try await TransferRunner(options: options, services: services, observer: nil).run()
            return .success
        } catch {
            say(STDERR_FILENO, "crash-victim: \(error.message)")
            return ExitStatus(error)
        }
    }

    private static func say(_ descriptor: Int32, _ text: String) {
        let bytes = Array((text + "\n").utf8)
        // A failed write means that no process reads the output. The exit status gives the same result.
        _ = bytes.withUnsafeBytes { write(descriptor, $0.baseAddress, $0.count) }
    }
}
