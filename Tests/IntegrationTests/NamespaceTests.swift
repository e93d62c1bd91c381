import FaultServer
import Foundation
import Testing

/// Catalogue B in a network of its own: links that go down, rates that change, addresses that are replaced, and
/// name servers that fail (rows 60, 65–67).
@Suite(.serialized, .timeLimit(.minutes(4)), .enabled(if: NetworkNamespace.canMake))
struct NamespaceTests {
    private static let waits = [
        "--retry-wait", "0.2", "--stall-timeout", "2", "--connect-timeout", "5", "--max-tries", "0", "--progress",
        "plain",
    ]

    private static func command(_ network: NetworkNamespace, _ url: String, _ more: [String] = []) -> [String] {
        NetworkNamespace.inside(network.client) + [ChildRun.tow, "get"] + waits + more + ["-o", Site.name, url]
    }

    /// A download in the client's namespace from a server in the other; `meanwhile` runs when some bytes have come.
    private func download(
        size: Int64 = 12_000_000, rate: Int64 = 3_000_000, _ more: [String] = ["-x", "2"],
        _ meanwhile: (NetworkNamespace) async throws -> Void
    ) async throws {
        try await NetworkNamespace.with { network in
            let server = try await ServerProgram(
                in: network.server,
                [
                    "--host", NetworkNamespace.serverAddress, "--path", Site.path, "--file-size", "\(size)", "--rate",
                    "\(rate)",
                ])
            let scratch = try Scratch()
            let url = "http://\(NetworkNamespace.serverAddress):\(server.port)\(Site.path)"
            let run = try ChildRun(Self.command(network, url, more), directory: scratch.path)
            // The part file's blocks tell of bytes that came, without a word from either side.
            for _ in 0..<2000 where scratch.blocks("file.bin.tow") < 1_000_000 {
                try await Task.sleep(for: .milliseconds(10))
            }
            try await meanwhile(network)
            let result = try await run.finish()
            #expect(result.status == 0, "\(result.stderr)")
            #expect(try FaultContent(seed: 1).firstMismatch(inFile: scratch.file(Site.name), length: size) == nil)
            try await server.stop()
        }
    }

    /// Row 60: the link is down for longer than the stall timeout.
    @Test func row60LinkDown() async throws {
        try await download(["-x", "2", "--no-preallocate"]) { network in
            try await NetworkNamespace.ip("-n", network.client, "link", "set", network.clientLink, "down")
            try await Task.sleep(for: .seconds(5))
            try await NetworkNamespace.ip("-n", network.client, "link", "set", network.clientLink, "up")
        }
    }

    /// Row 65: 1 Mbit and 100 Mbit in turn.
    @Test func row65RateChanges() async throws {
        try await download(["-x", "4", "--no-preallocate"]) { network in
            try await network.limit("1mbit", isFirst: true)
            for round in 0..<3 {
                try await Task.sleep(for: .milliseconds(700))
                try await network.limit(round % 2 == 0 ? "100mbit" : "1mbit", isFirst: false)
            }
        }
    }

    /// Row 66: the client gets another address; its old connections are dead.
    @Test func row66AddressReplaced() async throws {
        try await download(["-x", "2", "--no-preallocate"]) { network in
            try await NetworkNamespace.ip(
                "-n", network.client, "addr", "del", "10.77.0.2/24", "dev", network.clientLink)
            try await NetworkNamespace.ip(
                "-n", network.client, "addr", "add", "10.77.0.9/24", "dev", network.clientLink)
        }
    }

    // MARK: Names

    enum Resolver: String, CaseIterable, Sendable {
        case answers, slow, failsTwice, deadIPv6, alwaysFails, doesNotExist
    }

    /// Row 67: what a name server may do. The first two attempts may fail; the file comes, or the exit status says that
    /// the network failed.
    @Test(arguments: Resolver.allCases) func row67NameServers(_ resolver: Resolver) async throws {
        try await NetworkNamespace.with { network in
            try network.setResolver("nameserver 127.0.0.1\noptions timeout:3 attempts:1\n")
            let server = try await ServerProgram(
                in: network.client, ["--path", Site.path, "--file-size", "500000"])
            let scratch = try Scratch()
            let script = try scratch.write("names.py", Self.nameServer)
            let names = try ChildRun(
                NetworkNamespace.inside(network.client) + ["/usr/bin/python3", "-u", script, resolver.rawValue])
            for _ in 0..<1000 where !names.stdoutSoFar.contains("ready") {
                try await Task.sleep(for: .milliseconds(10))
            }
            let tries = ["--max-tries", "5", "--connect-timeout", "20"]
            let result = try await ChildRun.run(
                Self.command(network, "http://files.test:\(server.port)\(Site.path)", tries), directory: scratch.path)
            names.signal(SIGKILL)
            _ = try await names.finish()
            try await server.stop()
            switch resolver {
            case .alwaysFails, .doesNotExist:
                #expect(result.status == 3, "\(result.stderr)")
                #expect(!scratch.isThere(Site.name) && !scratch.isThere("file.bin.tow"))
            default:
                #expect(result.status == 0, "\(result.stderr)")
                let file = scratch.file(Site.name)
                #expect(try FaultContent(seed: 1).firstMismatch(inFile: file, length: 500_000) == nil)
            }
        }
    }

    /// A name server that knows one name, and misbehaves as it is told (RFC 1035 §4.1).
    private static let nameServer = """
        import socket, struct, sys, time, threading
        mode, count = sys.argv[1], 0
        s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        s.bind(("127.0.0.1", 53))
        print("ready")
        def answer(data, peer, number):
            end = 12
            while data[end]:
                end += data[end] + 1
            kind = struct.unpack(">H", data[end + 1:end + 3])[0]
            question = data[12:end + 5]
            code, records = 0, b""
            if mode == "slow":
                time.sleep(2)
            if mode == "alwaysFails" or mode == "failsTwice" and number < 4:
                code = 2
            elif mode == "doesNotExist":
                code = 3
            elif kind == 1:
                records = b"\\xc0\\x0c" + struct.pack(">HHIH", 1, 1, 1, 4) + bytes([127, 0, 0, 1])
            elif kind == 28 and mode == "deadIPv6":
                address = socket.inet_pton(socket.AF_INET6, "2001:db8::1")
                records = b"\\xc0\\x0c" + struct.pack(">HHIH", 28, 1, 1, 16) + address
            head = data[:2] + struct.pack(">HHHHH", 0x8180 | code, 1, 1 if records else 0, 0, 0)
            s.sendto(head + question + records, peer)
        while True:
            data, peer = s.recvfrom(2000)
            threading.Thread(target=answer, args=(data, peer, count), daemon=True).start()
            count += 1
        """
}

extension Scratch {
    /// The bytes that a file has blocks for.
    func blocks(_ name: String) -> Int64 {
        var status = stat()
        return lstat(file(name), &status) == 0 ? Int64(status.st_blocks) * 512 : 0
    }
}
