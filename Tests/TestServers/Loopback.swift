import Foundation
import Synchronization

/// Operations on ports of the loopback address.
package enum Loopback {
    /// Binds to a port of 127.0.0.1, or to a free port if `port` is 0, and returns the port.
    package static func bind(_ descriptor: Int32, port: UInt16 = 0) -> UInt16 {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        return withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { pointer in
                var yes: Int32 = 1
                setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &yes, 4)
                guard Glibc.bind(descriptor, pointer, length) == 0 else { fatalError("bind: errno \(errno)") }
                getsockname(descriptor, pointer, &length)
            }
            return UInt16(bigEndian: pointer.pointee.sin_port)
        }
    }

    /// Returns an unused port for a program that needs a port number. Each call returns another port. The ports are
    /// below the range that the system assigns automatically, so that no other program gets the port first.
    package static func freePort() -> UInt16 {
        while true {
            let port = 20_000 + UInt16(truncatingIfNeeded: next.wrappingAdd(1, ordering: .relaxed).oldValue % 12_000)
            let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
            defer { close(descriptor) }
            if tryBind(descriptor, port: port) { return port }
        }
    }

    private static let next = Atomic<UInt64>(UInt64.random(in: 0..<12_000))

    private static func tryBind(_ descriptor: Int32, port: UInt16) -> Bool {
        withAddress(port) { Glibc.bind(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0 }
    }

    private static func withAddress<Result>(_ port: UInt16, _ body: (UnsafePointer<sockaddr>) -> Result) -> Result {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        return withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1, body)
        }
    }

    /// Returns whether a program accepts connections on the port.
    package static func accepts(_ port: UInt16) -> Bool {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        defer { close(descriptor) }
        return withAddress(port) { connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0 }
    }
}
