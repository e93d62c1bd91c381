import Foundation
import Glibc

/// A program that runs beside the test, with pipes to both of its ends.
final class Child {
    let process = Process()
    private let input = Pipe()
    private let output = Pipe()

    /// `registry-victim` of the build: beside the running tests.
    static var victim: String {
        let own = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath()
        return own.deletingLastPathComponent().path + "/registry-victim"
    }

    init(_ program: String, _ arguments: [String]) throws {
        process.executableURL = URL(fileURLWithPath: program)
        process.arguments = arguments
        process.standardInput = input
        process.standardOutput = output
        process.standardError = FileHandle.nullDevice
        try process.run()
    }

    /// Reads until a line is there; `false` if the output ends first.
    func wait(for line: String) -> Bool {
        var seen = Data()
        while true {
            let more = output.fileHandleForReading.availableData
            if more.isEmpty { return false }
            seen += more
            if String(decoding: seen, as: UTF8.self).split(separator: "\n").contains(Substring(line)) { return true }
        }
    }

    /// Everything it says, until it ends.
    func finish() -> String {
        try? input.fileHandleForWriting.close()
        let all = output.fileHandleForReading.readDataToEndOfFile()
        process.waitUntilExit()
        return String(decoding: all, as: UTF8.self)
    }

    func kill() {
        Glibc.kill(process.processIdentifier, SIGKILL)
        _ = finish()
    }
}
