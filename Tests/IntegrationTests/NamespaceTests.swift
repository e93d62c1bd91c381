import FaultServer
import Foundation
import Testing

/// Catalogue B in a network of its own: links that fail, rates that change, addresses that are replaced, and name
/// servers that fail (rows 60, 65–67).
@Suite(.serialized, .timeLimit(.minutes(4)), .enabled(if: NetworkNamespace.canMake))
struct NamespaceTests {
    private static let waits = [
        "--retry-wait", "0.2", "--stall-timeout", "2", "--connect-timeout", "5", "--max-tries", "0", "--progress",
        "plain",
    ]

    private static func command(_ network: NetworkNamespace, _ url: String, _ more: [String] = []) -> [String] {
        NetworkNamespace.inside(network.client) + [ChildRun.tow, "get"] + waits + more + ["-o", Site.name, url]
    }

    /// Downloads in the client's namespace from a server in the other; `meanwhile` runs when some bytes have arrived.
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
            // The part file's blocks show that bytes have arrived, without a message from either side.
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

    /// Row 65: the rate alternates between 1 Mbit/s and 100 Mbit/s.
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
        case answers, slow, verySlow, failsTwice, deadIPv6, alwaysFails, doesNotExist
    }

    /// Row 67: faults of a name server. The first two attempts may fail; then the file arrives, or the exit status
    /// reports a network failure.
    @Test(arguments: Resolver.allCases) func row67NameServers(_ resolver: Resolver) async throws {
        try await NetworkNamespace.with { network in
            let patience = resolver == .verySlow ? 28 : 3
            try network.setResolver("nameserver 127.0.0.1\noptions timeout:\(patience) attempts:1\n")
            let server = try await ServerProgram(
                in: network.client, ["--path", Site.path, "--file-size", "500000"])
            let scratch = try Scratch()
            let names = try await Self.startNameServer(network, scratch, resolver.rawValue)
            let tries = ["--max-tries", "5", "--connect-timeout", "50", "--stall-timeout", "50"]
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

    /// Ctrl-C does not wait for a name server that takes twenty seconds.
    @Test func interruptedWhileANameIsLookedUp() async throws {
        try await NetworkNamespace.with { network in
            try network.setResolver("nameserver 127.0.0.1\noptions timeout:28 attempts:1\n")
            let scratch = try Scratch()
            let names = try await Self.startNameServer(network, scratch, Resolver.verySlow.rawValue)
            let run = try ChildRun(
                Self.command(network, "http://files.test:81\(Site.path)", ["--connect-timeout", "50"]),
                directory: scratch.path)
            for _ in 0..<2000 where !names.stdoutSoFar.contains("asked") {
                try await Task.sleep(for: .milliseconds(10))
            }
            try #require(names.stdoutSoFar.contains("asked"), "\(names.stderrSoFar)")
            let interrupted = ContinuousClock.now
            run.signal(SIGINT)
            let result = try await run.finish()
            #expect(ContinuousClock.now - interrupted < .seconds(2))
            #expect(result.status == 130, "\(result.stderr)")
            names.signal(SIGKILL)
            _ = try await names.finish()
        }
    }

    /// Starts the name server, which answers with the address in the file `address` of the scratch directory.
    private static func startNameServer(
        _ network: NetworkNamespace, _ scratch: Scratch, _ mode: String
    ) async throws -> ChildRun {
        try setAddress("127.0.0.1", scratch)
        let script = try scratch.write("names.py", nameServer)
        let names = try ChildRun(
            NetworkNamespace.inside(network.client)
                + ["/usr/bin/python3", "-u", script, mode, scratch.file("address")])
        // A program's output sends no notification, so it is polled.
        for _ in 0..<2000 where !names.stdoutSoFar.contains("ready") {
            try await Task.sleep(for: .milliseconds(10))
        }
        try #require(names.stdoutSoFar.contains("ready"), "\(names.stderrSoFar)")
        return names
    }

    private static func setAddress(_ address: String, _ scratch: Scratch) throws {
        try address.write(toFile: scratch.file("address"), atomically: true, encoding: .utf8)
    }

    /// Rows 58, 67: the address of a name changes. The server at the old address is gone; another one at the new
    /// address has the same file.
    private func moves(
        from address: String, _ more: [String], _ body: (Scratch, ChildRun, ServerProgram) async throws -> Void
    ) async throws {
        try await NetworkNamespace.with { network in
            try network.setResolver("nameserver 127.0.0.1\noptions timeout:3 attempts:1\n")
            let scratch = try Scratch()
            let names = try await Self.startNameServer(network, scratch, "answers")
            let file = ["--path", Site.path, "--file-size", "8000000", "--rate", "2000000"]
            let first = try await ServerProgram(in: network.client, ["--host", "127.0.0.2"] + file)
            try Self.setAddress(address, scratch)
            let url = "http://files.test:\(first.port)\(Site.path)"
            let second = try await ServerProgram(
                in: network.client, ["--host", "127.0.0.3", "--port", "\(first.port)"] + file)
            let run = try ChildRun(
                Self.command(network, url, ["--no-preallocate"] + more), directory: scratch.path)
            try await body(scratch, run, first)
            let result = try await run.finish()
            names.signal(SIGKILL)
            _ = try await names.finish()
            let log = second.log
            try await second.stop()
            #expect(result.status == 0, "\(result.stderr)")
            #expect(try FaultContent(seed: 1).firstMismatch(inFile: scratch.file(Site.name), length: 8_000_000) == nil)
            #expect(!log.isEmpty, "the second server was asked")
        }
    }

    /// Row 58: the address changes during a download, which continues at the new address under the same name.
    @Test(arguments: [1, 4]) func row58NameMovesInTheMiddle(connections: Int) async throws {
        try await moves(from: "127.0.0.2", ["-x", "\(connections)"]) { scratch, _, first in
            for _ in 0..<2000 where scratch.blocks("file.bin.tow") < 2_000_000 {
                try await Task.sleep(for: .milliseconds(10))
            }
            try Self.setAddress("127.0.0.3", scratch)
            try await first.stop()
        }
    }

    /// Row 67: the first answer names an address without a server; a later answer is right. The download uses it within
    /// the usual tries, although an answer could be cached for a minute.
    @Test func row67AnswerChanges() async throws {
        let tries = ["-x", "1", "--max-tries", "6", "--retry-wait", "0.5"]
        try await moves(from: "127.0.0.9", tries) { scratch, run, first in
            for _ in 0..<2000 where !run.stderrSoFar.contains("retrying in") {
                try await Task.sleep(for: .milliseconds(10))
            }
            try Self.setAddress("127.0.0.3", scratch)
            try await first.stop()
        }
    }

    /// A name server that knows one name, and misbehaves according to its mode (RFC 1035 §4.1).
    private static let nameServer = """
        import socket, struct, sys, time, threading
        mode, path, count = sys.argv[1], sys.argv[2], 0
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
            if mode == "verySlow":
                time.sleep(20)
            if mode == "alwaysFails" or mode == "failsTwice" and number < 4:
                code = 2
            elif mode == "doesNotExist":
                code = 3
            elif kind == 1:
                records = b"\\xc0\\x0c" + struct.pack(">HHIH", 1, 1, 1, 4) + socket.inet_aton(open(path).read())
            elif kind == 28 and mode == "deadIPv6":
                address = socket.inet_pton(socket.AF_INET6, "2001:db8::1")
                records = b"\\xc0\\x0c" + struct.pack(">HHIH", 28, 1, 1, 16) + address
            head = data[:2] + struct.pack(">HHHHH", 0x8180 | code, 1, 1 if records else 0, 0, 0)
            s.sendto(head + question + records, peer)
        while True:
            data, peer = s.recvfrom(2000)
            print("asked")
            threading.Thread(target=answer, args=(data, peer, count), daemon=True).start()
            count += 1
        """
}

extension Scratch {
    /// Returns the number of bytes in a file's blocks.
    func blocks(_ name: String) -> Int64 {
        var status = stat()
        return lstat(file(name), &status) == 0 ? Int64(status.st_blocks) * 512 : 0
    }
}
