import Glibc
import Testing

@testable import TowlineCurl

/// Tests sockets that stay registered with the kernel between two requests, on a real epoll(7).
@Suite struct SocketWatchTests {
    private let poll: EventPoll
    private let watch: SocketWatch

    init() throws {
        poll = try #require(EventPoll())
        watch = SocketWatch(poll: poll)
    }

    /// Returns the two ends of a connection; the first gets the descriptor `number`, unless that is `nil`.
    private func pair(_ number: Int32? = nil) throws -> (Int32, Int32) {
        var ends: [Int32] = [-1, -1]
        try #require(socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &ends) == 0)
        guard let number, number != ends[0] else { return (ends[0], ends[1]) }
        try #require(dup2(ends[0], number) == number)
        Glibc.close(ends[0])
        return (number, ends[1])
    }

    /// Returns the descriptors with wanted events within a tenth of a second, as the engine thread would receive them.
    private func heard() -> [Int32] {
        var descriptors: [Int32] = []
        _ = poll.wait(milliseconds: 100) { event in
            if watch.isWanted(event.descriptor) { descriptors.append(event.descriptor) }
        }
        return descriptors
    }

    private func send(_ descriptor: Int32) { #expect(write(descriptor, "x", 1) == 1) }

    @Test func aConnectionIsHeardOfAgainWithTheNextRequest() throws {
        let (near, far) = try pair()
        watch.opened(near)
        #expect(watch.want(.write, of: near, tag: 1))
        #expect(heard() == [near])
        for _ in 0..<3 {
            #expect(watch.want(.read, of: near, tag: 1))
            send(far)
            #expect(heard() == [near])
            var byte: UInt8 = 0
            #expect(read(near, &byte, 1) == 1)
            watch.dismiss(near)
        }
        // Bytes without a request cause one event, which is dropped.
        send(far)
        #expect(heard() == [])
        var events = 0
        _ = poll.wait(milliseconds: 50) { _ in events += 1 }
        #expect(events == 0, "it is watched no more")
        #expect(watch.want(.read, of: near, tag: 1))
        #expect(heard() == [near])
        watch.closed(near)
        Glibc.close(near)
        Glibc.close(far)
    }

    /// Returns the two ends of a TCP connection.
    private func connection() throws -> (Int32, Int32) {
        let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        let near = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        defer { Glibc.close(listener) }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        try withUnsafeMutablePointer(to: &address) {
            try $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                try #require(bind(listener, address, length) == 0 && listen(listener, 1) == 0)
                try #require(getsockname(listener, address, &length) == 0 && connect(near, address, length) == 0)
            }
        }
        return (near, accept(listener, nil, nil))
    }

    /// Returns the bytes that arrive within about 50 ms, as text; "" if none arrive.
    private func received(_ descriptor: Int32) -> String {
        var bytes = [UInt8](repeating: 0, count: 100)
        for _ in 0..<10 {
            let count = recv(descriptor, &bytes, bytes.count, Int32(MSG_DONTWAIT))
            if count > 0 { return String(decoding: bytes[..<count], as: UTF8.self) }
            usleep(5000)
        }
        return ""
    }

    /// Gathered sends arrive together when the watch releases them. Other descriptors and closed connections are
    /// unaffected.
    @Test func sendsAreGathered() throws {
        let (near, far) = try connection()
        watch.gatherSends(of: near)
        send(near)
        #expect(received(far) == "x", "nobody said that it is a connection")
        watch.opened(near)
        #expect(watch.want(.read, of: near, tag: 1))
        watch.gatherSends(of: near)
        for _ in 0..<3 {
            for _ in 0..<4 { send(near) }
            watch.sendGathered()
            #expect(received(far) == "", "nobody has sent anything, for all that the watch knows")
            watch.mayHaveSent = true
            watch.sendGathered()
            #expect(received(far) == "xxxx")
        }
        watch.closed(near)
        send(near)
        watch.mayHaveSent = true
        watch.sendGathered()
        #expect(received(far) == "")
        Glibc.close(near)
        #expect(received(far) == "x", "whatever waits goes out at the end")
        Glibc.close(far)
    }

    /// Above the limit, the descriptor that has gathered for the longest time sends immediately again.
    @Test func theOldestMakesWay() throws {
        let pairs = try (0...SocketWatch.mostGathering).map { _ in try connection() }
        for (near, far) in pairs {
            watch.opened(near)
            #expect(watch.want(.read, of: near, tag: 1))
            watch.gatherSends(of: near)
            send(near)
            #expect(received(far) == "")
            watch.gatherSends(of: near)
        }
        #expect(received(pairs[0].1) == "x", "the waiting bytes leave when another descriptor replaces this one")
        send(pairs[0].0)
        #expect(received(pairs[0].1) == "x", "later bytes leave at once")
        watch.mayHaveSent = true
        watch.sendGathered()
        for (near, far) in pairs {
            if near != pairs[0].0 { #expect(received(far) == "x") }
            watch.closed(near)
            Glibc.close(near)
            Glibc.close(far)
        }
    }

    /// A descriptor may be reused after its socket was closed, with or without notice: the new socket's events arrive.
    @Test(arguments: [true, false]) func aNumberThatIsUsedAgainIsHeardOf(isTold: Bool) throws {
        let made = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        // The descriptor must not be used by another test, or by the other case of this one, which runs concurrently.
        let number = fcntl(made, F_DUPFD_CLOEXEC, isTold ? 700 : 800)
        try #require(number >= 700)
        Glibc.close(made)
        watch.opened(number)
        #expect(watch.want(.write, of: number, tag: 1))
        if isTold { watch.closed(number) }
        Glibc.close(number)
        for _ in 0..<3 {
            let (near, far) = try pair(number)
            #expect(watch.want(.read, of: near, tag: 1))
            send(far)
            #expect(heard() == [near])
            watch.dismiss(near)
            Glibc.close(near)
            Glibc.close(far)
        }
    }
}
