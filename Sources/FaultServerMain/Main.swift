import FaultServer
import Glibc

@main
struct Main {
    static func main() async throws {
        let server = try await FaultServer.start([
            "/file": Resource(length: Int64(CommandLine.arguments.dropFirst().first ?? "1073741824") ?? 0)
        ])
        print("listening \(server.port)")
        fflush(nil)
        while true { try await Task.sleep(for: .seconds(100)) }
    }
}
