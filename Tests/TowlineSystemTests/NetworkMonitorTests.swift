import Foundation
import Synchronization
import Testing
import TowlineCore
import TowlineEngine
import TowlineSystem
import TowlineThreads

/// A network namespace with a monitor.
private final class MonitoredNetwork: Sendable {
    static let canMake = ProcessInfo.processInfo.environment["CI"] != nil || geteuid() == 0

    private let name: String
    let monitor: NetlinkMonitor

    init() async throws {
        let name = "tow-m-" + String(UInt32.random(in: 0...(.max)), radix: 36)
        self.name = name
        try await Self.ip("netns", "add", name)
        monitor = try #require(try await Self.inside(name) { NetlinkMonitor() })
    }

    func ip(_ arguments: String...) async throws { try await Self.run(["/usr/sbin/ip", "-n", name] + arguments) }

    /// Runs a command whose arguments are separated by spaces.
    func ip(_ command: String) async throws {
        try await Self.run(["/usr/sbin/ip", "-n", name] + command.split(separator: " ").map(String.init))
    }

    func remove() async throws {
        await monitor.close()
        try await Self.ip("netns", "del", name)
    }

    private static func ip(_ arguments: String...) async throws { try await run(["/usr/sbin/ip"] + arguments) }

    private static func run(_ command: [String]) async throws {
        let outcome = try await CommandRunner().run(command)
        try #require(outcome.succeeded, "\(command): \(String(decoding: outcome.tail, as: UTF8.self))")
    }

    /// Runs `body` on a new thread that enters the namespace first.
    private static func inside<Value: Sendable>(_ name: String, _ body: @escaping @Sendable () -> Value) async throws
        -> Value
    {
        try await WorkThread.run { (_) throws(TowlineError) in
            typealias SetNamespace = @convention(c) (Int32, Int32) -> Int32
            let folder = open("/var/run/netns/" + name, O_RDONLY | O_CLOEXEC)
            defer { close(folder) }
            guard let call = dlsym(nil, "setns"), unsafeBitCast(call, to: SetNamespace.self)(folder, 0x4000_0000) == 0
            else { throw TowlineError(.commandFailed, "setns") }
            return body()
        }
    }
}

@Suite("Network changes", .timeLimit(.minutes(2)), .enabled(if: MonitoredNetwork.canMake))
struct NetworkMonitorTests {
    private func with(_ body: (MonitoredNetwork) async throws -> Void) async throws {
        let network = try await MonitoredNetwork()
        do {
            try await body(network)
        } catch {
            try await network.remove()
            throw error
        }
        try await network.remove()
    }

    @Test("changes of a link, an address and a route are reported")
    func changes() async throws {
        try await with { network in
            var changes = network.monitor.changes().makeAsyncIterator()
            try await network.ip("link", "add", "one", "type", "veth", "peer", "name", "two")
            #expect(await changes.next() != nil)
            try await network.ip("link", "set", "one", "up")
            #expect(await changes.next() != nil)
            try await network.ip("link", "set", "two", "up")
            #expect(await changes.next() != nil)
            try await network.ip("addr", "add", "10.78.0.1/24", "dev", "one")
            #expect(await changes.next() != nil)
            try await network.ip("route", "add", "default", "via", "10.78.0.9")
            #expect(await changes.next() != nil)
            // The link has no carrier, as if the cable were disconnected at the other end.
            try await network.ip("link", "set", "two", "down")
            #expect(await changes.next() != nil)
        }
    }

    @Test("the network is unavailable while no interface other than loopback is connected and has a route")
    func states() async throws {
        try await with { network in
            var changes = network.monitor.changes().makeAsyncIterator()
            func reach(_ state: NetworkState, _ command: String) async throws {
                try await network.ip(command)
                // One command may cause several changes. The time limit of the suite ends a wait for a missing one.
                while network.monitor.state != state { #expect(await changes.next() != nil) }
            }
            #expect(network.monitor.state == .unavailable)
            try await network.ip("link set lo up")
            try await network.ip("link add one type veth peer name two")
            try await network.ip("link set two up")
            try await network.ip("addr add 10.78.0.1/24 dev one")
            try await reach(.available, "link set one up")
            try await reach(.unavailable, "link set one down")
            try await reach(.available, "link set one up")
            // The link has no carrier, as if the cable were disconnected at the other end.
            try await reach(.unavailable, "link set two down")
            try await reach(.available, "link set two up")
            try await reach(.unavailable, "addr del 10.78.0.1/24 dev one")
            try await reach(.available, "addr add fd00::1/64 dev one nodad")
            try await reach(.unavailable, "link del one")
        }
    }

    @Test("a hundred changes at once are reported as a few, and unread changes do not accumulate")
    func coalesced() async throws {
        try await with { network in
            let lazy = network.monitor.changes()
            let counted = Mutex(0)
            let counter = Task { [changes = network.monitor.changes()] in
                for await _ in changes { counted.withLock { $0 += 1 } }
            }
            let start = ContinuousClock.now
            try await network.ip("link", "add", "one", "type", "veth", "peer", "name", "two")
            try await network.ip("link", "set", "one", "up")
            for number in 1...100 { try await network.ip("addr", "add", "10.78.0.\(number)/24", "dev", "one") }
            // The first window may contain all changes, and is reported at its end.
            while counted.withLock({ $0 }) == 0 { try await Task.sleep(for: .milliseconds(10)) }
            let windows = Int((ContinuousClock.now - start) / NetlinkMonitor.window) + 2
            await network.monitor.close()
            await counter.value
            #expect(counted.withLock { $0 } <= windows)
            var left = 0
            for await _ in lazy { left += 1 }
            #expect(left == 1)
        }
    }

    @Test("closing ends the streams and releases the thread and the descriptors")
    func closed() async throws {
        func sockets() throws -> Int {
            try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").count {
                let target = try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/" + $0)
                return target?.hasPrefix("socket:") == true
            }
        }
        let before = try sockets()
        var monitors = (0..<50).compactMap { _ in NetlinkMonitor() }
        #expect(monitors.count == 50)
        let streams = monitors.map { $0.changes() }
        #expect(try sockets() >= 50)
        for monitor in monitors {
            await monitor.close()
            await monitor.close()
        }
        for stream in streams { for await _ in stream {} }
        var ended = monitors[0].changes().makeAsyncIterator()
        #expect(await ended.next() == nil)
        monitors = []
        #expect(try sockets() < before + 25, "concurrent tests have a few sockets")
    }

    @Test("releasing a monitor ends its streams")
    func dropped() async throws {
        var stream: AsyncStream<NetworkState>?
        do {
            let monitor = try #require(NetlinkMonitor())
            stream = monitor.changes()
        }
        for await _ in try #require(stream) {}
    }

    @Test("the ticking monitor reports changes at intervals until it is closed")
    func ticking() async throws {
        let monitor = TickingMonitor(first: .milliseconds(1), longest: .milliseconds(4))
        var changes = monitor.changes().makeAsyncIterator()
        for _ in 0..<5 { #expect(await changes.next() != nil) }
        await monitor.close()
        while await changes.next() != nil {}
        var ended = monitor.changes().makeAsyncIterator()
        #expect(await ended.next() == nil)
    }

    @Test("the ticking monitor reports a change of the state soon")
    func tickingState() async throws {
        let network = Mutex(NetworkState.available)
        let monitor = TickingMonitor(poll: .milliseconds(1)) { network.withLock { $0 } }
        var changes = monitor.changes().makeAsyncIterator()
        for state in [NetworkState.unavailable, .available] {
            network.withLock { $0 = state }
            #expect(await changes.next() == state)
            #expect(monitor.state == state)
        }
        await monitor.close()
    }
}
