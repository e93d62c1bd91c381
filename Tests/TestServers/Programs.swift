import Foundation

/// Servers and tools of the Linux distribution that tests run on the loopback address.
package enum Programs {
    package static let nginx = "/usr/sbin/nginx"
    package static let tinyproxy = "/usr/bin/tinyproxy"
    package static let danted = "/usr/sbin/danted"
    package static let openssl = "/usr/bin/openssl"
    package static let python = "/usr/bin/python3"
    package static let squid = "/usr/sbin/squid"

    /// Returns whether all of `programs` are installed. Always returns `true` in CI, where a missing program must fail
    /// the test.
    package static func areThere(_ programs: String...) -> Bool {
        ProcessInfo.processInfo.environment["CI"] != nil
            || programs.allSatisfy { FileManager.default.isExecutableFile(atPath: $0) }
    }
}

/// A temporary directory that is deleted when the object is released.
package final class TemporaryFolder: Sendable {
    package let path: String

    package init() throws {
        path = NSTemporaryDirectory() + "towline-curl-" + UUID().uuidString
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    }

    deinit { try? FileManager.default.removeItem(atPath: path) }

    /// Writes a file and returns its path.
    @discardableResult
    package func write(_ name: String, _ text: String) throws -> String {
        let file = path + "/" + name
        try text.write(toFile: file, atomically: false, encoding: .utf8)
        return file
    }

    package func read(_ name: String) -> String {
        (try? String(contentsOfFile: path + "/" + name, encoding: .utf8)) ?? ""
    }
}
