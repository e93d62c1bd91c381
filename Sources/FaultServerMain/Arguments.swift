import FaultServer

/// The parsed command line.
struct Arguments {
    /// An error about an invalid argument, with the reason.
    struct Problem: Error {
        let text: String
    }

    static let usage = """
        usage: fault-server [OPTION VALUE]...
          --host ADDRESS          address to listen on (default: 127.0.0.1)
          --port N                port to listen on; 0 lets the system choose (default: 0)
          --path PATH             path of the file; a trailing * matches any ending (default: /file)
          --file-size N           size of the file in bytes (default: 1048576)
          --seed N                seed of the file's bytes (default: 1)
          --etag strong|weak|none kind of ETag that is sent (default: strong)
          --resource PATH=SIZE    serve another file; may be repeated
          --rate N                maximum bytes per second of each response
          --shared-rate N         maximum bytes per second of all responses together
          --fault NAME            answer requests for the file with this fault
          --fault-first N         use the fault for the first N requests only
          --fault-after N         use the fault only after the first N requests
          --connection-limit N    allow N requests at the same time; answer others with 503
          --tls-chain FILE --tls-key FILE   serve TLS with these PEM files
          --http2 yes             serve HTTP/2 to clients that start with the HTTP/2 preface
          --log FILE              write a log of all requests to FILE, as JSON lines
          --until-eof yes         also stop when standard input ends
          --list-faults yes       print the names of all faults and exit
        """

    var options = ServerOptions()
    var resources: [String: Resource] = [:]
    var stopsAtEndOfInput = false
    var listsFaults = false

    private var path = "/file"
    private var version = Version(length: 1 << 20)
    private var seed: UInt64 = 1
    private var etag = "strong"
    private var rate: Int64?
    private var fault: Fault?
    private var faultFirst: Int?
    private var faultAfter: Int?
    private var chain: String?
    private var key: String?
    private var others: [(String, Int64)] = []

    init(_ words: [String]) throws {
        var rest = words[...]
        while let option = rest.popFirst() {
            guard let value = rest.popFirst() else { throw Problem(text: "the option \(option) requires a value") }
            try take(option, value)
        }
        try finish()
    }

    private mutating func take(_ option: String, _ value: String) throws {
        switch option {
        case "--host": options.host = value
        case "--port": options.port = Int(try number(value))
        case "--path": path = value
        case "--file-size": version.length = try number(value)
        case "--seed": seed = UInt64(try number(value))
        case "--etag": etag = value
        case "--resource": others.append(try resource(value))
        case "--rate": rate = try number(value)
        case "--shared-rate": options.sharedRate = try number(value)
        case "--fault": fault = try named(value)
        case "--fault-first": faultFirst = Int(try number(value))
        case "--fault-after": faultAfter = Int(try number(value))
        case "--connection-limit": fault = .connectionLimit(Int(try number(value)))
        case "--tls-chain": chain = value
        case "--tls-key": key = value
        case "--http2": options.http2 = value == "yes"
        case "--until-eof": stopsAtEndOfInput = value == "yes"
        case "--list-faults": listsFaults = value == "yes"
        case "--log":
            guard let file = LogFile(path: value) else { throw Problem(text: "cannot open the log file \(value)") }
            options.logFile = file
        default: throw Problem(text: "unknown option \(option)")
        }
    }

    private mutating func finish() throws {
        if let chain, let key { options.tls = ServerOptions.TLS(certificateChain: chain, privateKey: key) }
        let tag: Version.EntityTag =
            switch etag {
            case "strong": .strong("\(seed)-\(version.length)")
            case "weak": .weak("\(seed)-\(version.length)")
            case "none": .absent
            default: throw Problem(text: "invalid value \(etag) of --etag: expected strong, weak or none")
            }
        version = Version(seed: seed, length: version.length, etag: tag)
        for (path, length) in others { resources[path] = Resource(length: length, seed: seed, rate: rate) }
        resources[path] = Resource(version, rate: rate, behaviour: behaviour)
    }

    private var behaviour: Behaviour {
        guard let fault else { return .correct }
        if let faultFirst { return .first(faultFirst, fault) }
        if let faultAfter { return .after(faultAfter, fault) }
        return .always(fault)
    }

    private func number(_ text: String) throws -> Int64 {
        guard let number = Int64(text), number >= 0 else {
            throw Problem(text: "invalid number \(text): expected an integer of 0 or more")
        }
        return number
    }

    private func named(_ name: String) throws -> Fault {
        guard let fault = Fault.all[name] else {
            throw Problem(text: "unknown fault \(name). Use --list-faults yes to list all faults")
        }
        return fault
    }

    private func resource(_ text: String) throws -> (String, Int64) {
        let parts = text.split(separator: "=", maxSplits: 1)
        guard parts.count == 2 else { throw Problem(text: "invalid value \(text) of --resource: expected PATH=SIZE") }
        return (String(parts[0]), try number(String(parts[1])))
    }
}
