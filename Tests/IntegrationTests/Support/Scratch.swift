import FaultServer
import Foundation
import TowlineEngine

/// A directory for one test. It is removed when the object is released.
final class Scratch: Sendable {
    let path: String

    init(in parent: String = NSTemporaryDirectory()) throws {
        path = (parent.hasSuffix("/") ? parent : parent + "/") + "tow-integration-" + UUID().uuidString
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    }

    deinit { try? FileManager.default.removeItem(atPath: path) }

    func file(_ name: String) -> String { path + "/" + name }

    @discardableResult
    func write(_ name: String, _ text: String) throws -> String {
        try text.write(toFile: file(name), atomically: false, encoding: .utf8)
        return file(name)
    }

    func read(_ name: String) -> String { (try? String(contentsOfFile: file(name), encoding: .utf8)) ?? "" }

    /// Creates a key and a certificate for 127.0.0.1 in the directory, as `key.pem` and `chain.pem`.
    ///
    /// - Returns: The options of a server that uses them.
    func makeTLS() async throws -> ServerOptions {
        try await ChildRun.tool(
            "/usr/bin/openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
            "-days", "2", "-subj", "/CN=test", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", file("key.pem"),
            "-out", file("chain.pem"))
        var options = ServerOptions()
        options.tls = ServerOptions.TLS(certificateChain: file("chain.pem"), privateKey: file("key.pem"))
        return options
    }

    /// The names in the directory, sorted.
    var names: [String] { (try? FileManager.default.contentsOfDirectory(atPath: path))?.sorted() ?? [] }

    func isThere(_ name: String) -> Bool { (try? FileManager.default.attributesOfItem(atPath: file(name))) != nil }

    func size(_ name: String) -> Int64? {
        ((try? FileManager.default.attributesOfItem(atPath: file(name)))?[.size] as? NSNumber)?.int64Value
    }
}

/// How thorough a run is.
enum Thoroughness {
    /// `true` if `TOWLINE_TORTURE` is set: many more rounds.
    static let isTorture = ProcessInfo.processInfo.environment["TOWLINE_TORTURE"] != nil
    /// `true` in continuous integration: no test may be skipped because a program or a permission is missing.
    static let isRequired = ProcessInfo.processInfo.environment["CI"] != nil

    static func areThere(_ programs: String...) -> Bool {
        isRequired || programs.allSatisfy { FileManager.default.isExecutableFile(atPath: $0) }
    }
}

/// The memory that this process uses.
enum ProcessMemory {
    /// Resident bytes (`proc(5)`, statm).
    static var residentBytes: Int {
        let text = (try? String(contentsOfFile: "/proc/self/statm", encoding: .utf8)) ?? ""
        let pages = text.split(separator: " ").dropFirst().first.flatMap { Int($0) } ?? 0
        return pages * Int(getpagesize())
    }
}
