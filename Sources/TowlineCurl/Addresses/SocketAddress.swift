import CCurl
import Glibc
internal import TowlineCore

/// The IP address and port of a server in the kernel's form: the bytes of a `sockaddr_in` or `sockaddr_in6`.
struct SocketAddress: Hashable {
    let bytes: [UInt8]

    init(_ bytes: [UInt8]) { self.bytes = bytes }

    /// The address family of the bytes, such as `AF_INET`; 0 if there are too few bytes.
    var family: Int32 {
        bytes.withUnsafeBytes { Int32($0.count < 2 ? 0 : $0.loadUnaligned(as: sa_family_t.self)) }
    }

    /// Returns whether the address is on the public Internet and does not belong to this machine or to an IPv6 network
    /// that it is connected to. Returns `false` for an unknown family, and if the kernel cannot list this machine's
    /// addresses.
    var isPublic: Bool {
        let number: [UInt8] =
            switch family {
            case AF_INET where bytes.count >= 8: Array(bytes[4..<8])
            case AF_INET6 where bytes.count >= 24: Array(bytes[8..<24])
            default: []
            }
        let isPublic = LocalAddresses.current().map { PublicAddress.isPublic(number, beside: $0) } ?? false
        return isPublic && !LocalAddresses.isLocal(number)
    }

    /// The IP address as text, for libcurl's list of addresses; `nil` if the family is unknown.
    var text: String? {
        var text = [CChar](repeating: 0, count: Int(NI_MAXHOST))
        let code = bytes.withUnsafeBytes { bytes in
            getnameinfo(
                bytes.baseAddress?.assumingMemoryBound(to: sockaddr.self), socklen_t(bytes.count), &text,
                socklen_t(text.count), nil, 0, NI_NUMERICHOST)
        }
        guard code == 0 else { return nil }
        return String(decoding: text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    /// Returns the addresses of a host in the order that the system prefers (RFC 6724), without duplicates. Empty on
    /// failure.
    ///
    /// Blocks while the system looks the name up; a numeric address needs no lookup.
    ///
    /// - Parameters:
    ///   - host: a name or a numeric address, without brackets.
    ///   - family: `AF_INET`, `AF_INET6`, or `AF_UNSPEC` for both.
    static func resolve(_ host: String, port: Int, family: Int32) -> [SocketAddress] {
        var hints = addrinfo()
        hints.ai_family = family
        hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        var list: UnsafeMutablePointer<addrinfo>?
        guard getaddrinfo(host, String(port), &hints, &list) == 0 else { return [] }
        defer { freeaddrinfo(list) }
        var addresses: [SocketAddress] = []
        var next = list
        while let entry = next?.pointee {
            next = entry.ai_next
            guard let start = entry.ai_addr else { continue }
            let bytes = UnsafeRawBufferPointer(start: start, count: Int(entry.ai_addrlen))
            let address = SocketAddress(Array(bytes))
            if !addresses.contains(address) { addresses.append(address) }
        }
        return addresses
    }

    /// Starts to connect a new TCP socket to the address, without waiting.
    ///
    /// - Returns: the descriptor, with the options that libcurl sets on its own sockets (`applyRules`); `nil` if the
    ///   connection fails immediately.
    func connect() -> Int32? {
        let descriptor = socket(
            family, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue), Int32(IPPROTO_TCP))
        guard descriptor >= 0 else { return nil }
        let options = [
            (Int32(IPPROTO_TCP), TCP_NODELAY, 1), (SOL_SOCKET, SO_KEEPALIVE, 1),
            (Int32(IPPROTO_TCP), TCP_KEEPIDLE, Int32(60)), (Int32(IPPROTO_TCP), TCP_KEEPINTVL, 15),
        ]
        for (level, option, value) in options {
            var value = value
            _ = setsockopt(descriptor, level, option, &value, socklen_t(MemoryLayout<Int32>.size))
        }
        let code = bytes.withUnsafeBytes { bytes in
            Glibc.connect(
                descriptor, bytes.baseAddress?.assumingMemoryBound(to: sockaddr.self), socklen_t(bytes.count))
        }
        guard code == 0 || errno == EINPROGRESS else {
            close(descriptor)
            return nil
        }
        return descriptor
    }
}
