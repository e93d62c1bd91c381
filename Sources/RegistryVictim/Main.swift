import Glibc
import TowlineCore
import TowlineEngine
import TowlineRegistry

/// Drives a registry by a script of random calls and says on standard output what has returned, a line each, so that
/// a test that watches its system calls knows what was promised at each of them.
///
///     registry-victim STATE-DIRECTORY SEED STEPS [hold]
///
/// `hold` waits for the end of standard input after the steps, with the registry open.
@main
enum Main {
    static func main() async {
        let arguments = CommandLine.arguments
        guard arguments.count >= 4, let seed = UInt64(arguments[2]), let steps = Int(arguments[3]) else { exit(2) }
        do {
            let registry = try await SQLiteRegistry.open(stateDirectory: arguments[1]) { _ in [] }
            for notice in registry.notices { say("notice \(notice)") }
            say("opened")
            var script = Script(seed: seed)
            for _ in 0..<steps { try await script.step(registry) }
            say("done")
            if arguments.dropFirst(4).first == "hold" { while readLine() != nil {} }
            await registry.close()
            say("closed")
        } catch {
            say("error \(error.code) \(error.message)")
            exit(1)
        }
    }

    /// One call of the system a line: its place among the others is what counts.
    static func say(_ line: String) {
        let bytes = Array((line + "\n").utf8)
        _ = write(1, bytes, bytes.count)
    }
}

/// The calls. Lines are `begin CALL` and `end CALL`, where a call names its downloads by number:
/// `add 1 2 3`, `change 2 17` (held bytes, with an entry of the timeline), `remove 3`, `all 4` (every state becomes 4).
struct Script {
    private var state: UInt64
    private var next = 0
    private var present: [Int] = []
    private var round: Int64 = 0

    init(seed: UInt64) {
        state = seed
        next = Int(seed % 1000) * 1_000_000
    }

    private mutating func random(_ bound: Int) -> Int {
        state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
        return Int((state >> 33) % UInt64(bound))
    }

    mutating func step(_ registry: SQLiteRegistry) async throws(TowlineError) {
        round += 1
        switch random(20) {
        case 0..<7:
            // Long options make pages overflow, and transactions of many pages.
            let numbers = (0..<random(12) + 1).map { next + $0 }
            next += numbers.count
            let downloads = numbers.map { Script.download($0, options: random(6) == 0 ? 9_000 : 20) }
            try await call("add \(words(numbers))") { () throws(TowlineError) in _ = try await registry.add(downloads) }
            present += numbers
        case 7..<16 where !present.isEmpty:
            let number = present[random(present.count)]
            let time = round
            var change = RegistryChange(
                Script.id(number), entries: [TimelineNote(time: time, kind: "round", message: "\(time)")])
            change.heldBytes = time
            let changes = [change]
            try await call("change \(number) \(time)") { () throws(TowlineError) in try await registry.apply(changes) }
        case 16 where !present.isEmpty:
            let number = present.remove(at: random(present.count))
            try await call("remove \(number)") { () throws(TowlineError) in
                try await registry.remove([Script.id(number)])
            }
        case 17:
            let to = RegisteredState.allCases[random(7)]
            try await call("all \(to.number)") { () throws(TowlineError) in
                _ = try await registry.changeAll(from: Set(RegisteredState.allCases), to: to, group: nil)
            }
        default:
            let time = round
            try await call("set \(time)") { () throws(TowlineError) in
                try await registry.setValue("\(time)", for: "round")
            }
        }
    }

    private func call(_ name: String, _ body: () async throws(TowlineError) -> Void) async throws(TowlineError) {
        Main.say("begin \(name)")
        try await body()
        Main.say("end \(name)")
    }

    private func words(_ numbers: [Int]) -> String { numbers.map(String.init).joined(separator: " ") }

    static func id(_ number: Int) -> DownloadID {
        DownloadID(milliseconds: UInt64(number), random: (0, UInt64(number)))
    }

    static func download(_ number: Int, options: Int) -> RegisteredDownload {
        RegisteredDownload(
            id: id(number), source: "https://host.example/\(number)?token=t", host: "https://host.example:443",
            directory: "/downloads/\(number % 3)", name: "\(number).iso", identity: "identity \(number)",
            options: [UInt8](repeating: UInt8(number & 255), count: options), addedAt: Int64(number))
    }
}
