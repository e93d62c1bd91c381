import Glibc
import ShapingProxy

/// The program `shaping-proxy`: a ``ShapingProxy`` in its own process. Prints `listening PORT`, forwards until standard
/// input ends, and prints the counters as one JSON object.
@main
struct Main {
    static func main() {
        signal(SIGPIPE, SIG_IGN)
        do {
            let arguments = try Arguments(Array(CommandLine.arguments.dropFirst()))
            let proxy = try ShapingProxy(to: arguments.target, arguments.options)
            print("listening \(proxy.port)")
            fflush(nil)
            try proxy.run(untilEndOf: STDIN_FILENO)
            let seen = proxy.statistics
            print(
                "{\"accepted\":\(seen.accepted),\"mostOpen\":\(seen.mostOpen),\"resets\":\(seen.resets),"
                    + "\"bytes\":\(seen.bytes),\"cpuSeconds\":\(cpuSeconds())}")
        } catch let problem as Arguments.Problem {
            complain("shaping-proxy: \(problem.text)\n\(Arguments.usage)\n")
            exit(2)
        } catch {
            complain("shaping-proxy: \(error)\n")
            exit(1)
        }
    }

    private static func cpuSeconds() -> Double {
        var usage = rusage()
        getrusage(__rusage_who_t(RUSAGE_SELF.rawValue), &usage)
        let microseconds = usage.ru_utime.tv_usec + usage.ru_stime.tv_usec
        return Double(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) + Double(microseconds) / 1e6
    }

    private static func complain(_ text: String) {
        let bytes = Array(text.utf8)
        // Standard error may be closed; the exit status also reports the failure.
        _ = bytes.withUnsafeBytes { write(STDERR_FILENO, $0.baseAddress, $0.count) }
    }
}
