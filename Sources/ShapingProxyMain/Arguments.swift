import ShapingProxy

/// The parsed command line.
struct Arguments {
    /// An error about an invalid argument, with the reason.
    struct Problem: Error {
        let text: String
    }

    static let usage = """
        usage: shaping-proxy --target PORT [OPTION VALUE]...
          --target PORT              port on 127.0.0.1 to forward connections to
          --port PORT                port on 127.0.0.1 to listen on; 0 lets the system choose (default: 0)
          --delay-ms N               round-trip time in milliseconds (default: 0)
          --rate N                   maximum bytes per second of each connection towards the client
          --total-rate N             maximum bytes per second of all connections together
          --window N                 maximum bytes in flight per connection (default: 4194304)
          --slow-start yes           start each connection with a window of ten packets
          --slow-connection K=P%     limit the K-th connection to P percent of --rate; may be repeated
          --stall-connection K=N     stop sending on the K-th connection after N bytes; may be repeated
          --reset-after LOW-HIGH     reset each connection after a random number of bytes in this range
          --resets N                 reset only the first N connections
          --seed N                   seed of the random numbers (default: 1)
          --dies-after N             stop responding on all connections after N bytes in total
        """

    var options = ShapingOptions()
    var target: UInt16 = 0

    init(_ words: [String]) throws {
        var rest = words[...]
        while let option = rest.popFirst() {
            guard let value = rest.popFirst() else { throw Problem(text: "the option \(option) requires a value") }
            try take(option, value)
        }
        guard target != 0 else { throw Problem(text: "the option --target is required") }
        guard options.slow.isEmpty || options.rate != nil else {
            throw Problem(text: "the option --slow-connection requires --rate")
        }
    }

    private mutating func take(_ option: String, _ value: String) throws {
        switch option {
        case "--target": target = try port(value)
        case "--port": options.port = try port(value)
        case "--delay-ms": options.delay = try number(value, most: 60_000) * 1_000_000
        case "--rate": options.rate = try number(value, least: 1)
        case "--total-rate": options.totalRate = try number(value, least: 1)
        case "--window": options.window = Int(try number(value, least: 1, most: 1 << 30))
        case "--slow-start": options.slowStart = value == "yes"
        case "--slow-connection":
            let (connection, share) = try pair(value)
            guard share.last == "%", let percent = Double(share.dropLast()), (0...100).contains(percent) else {
                throw Problem(text: "invalid value \(value) of --slow-connection: expected K=P%")
            }
            options.slow[connection] = percent / 100
        case "--stall-connection":
            let (connection, count) = try pair(value)
            options.stalled[connection] = try number(String(count))
        case "--reset-after":
            let ends = value.split(separator: "-")
            guard ends.count == 2 else {
                throw Problem(text: "invalid value \(value) of --reset-after: expected LOW-HIGH")
            }
            let low = try number(String(ends[0]), least: 1)
            options.resetAfter = low...(try number(String(ends[1]), least: low))
        case "--resets": options.resets = Int(try number(value))
        case "--seed": options.seed = UInt64(try number(value))
        case "--dies-after": options.diesAfter = try number(value)
        default: throw Problem(text: "unknown option \(option)")
        }
    }

    private func pair(_ text: String) throws -> (connection: Int, value: Substring) {
        let parts = text.split(separator: "=", maxSplits: 1)
        guard parts.count == 2 else { throw Problem(text: "invalid value \(text): expected CONNECTION=VALUE") }
        return (Int(try number(String(parts[0]), least: 1)), parts[1])
    }

    private func port(_ text: String) throws -> UInt16 { UInt16(try number(text, most: 65_535)) }

    private func number(_ text: String, least: Int64 = 0, most: Int64 = .max) throws -> Int64 {
        guard let number = Int64(text), (least...most).contains(number) else {
            throw Problem(text: "invalid number \(text): expected an integer from \(least) to \(most)")
        }
        return number
    }
}
