import Foundation
import Glibc

/// A program that runs during a test, with pipes for its input and output.
final class Child {
    let process = Process()
    private let input = Pipe()
    private let output = Pipe()

    /// The path of the built program `registry-victim`, in the directory of the running tests.
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

    /// Reads the output until it contains a line. Returns `false` if the output ends first.
    func wait(for line: String) -> Bool {
        var seen = Data()
        while true {
            let more = output.fileHandleForReading.availableData
            if more.isEmpty { return false }
            seen += more
            if String(decoding: seen, as: UTF8.self).split(separator: "\n").contains(Substring(line)) { return true }
        }
    }

    /// Closes the input, waits for the end of the program, and returns the remaining output.
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
