import Glibc
import TowlineThreads

/// The result of running another program to its end.
struct ProgramRun {
    /// The exit status; 127 if the program does not exist, 128 plus the number of the signal that ended it.
    let status: Int32
    /// The standard output and standard error together, without trailing white space.
    let text: String

    /// The status if the program does not exist.
    static let notFound: Int32 = 127
    /// The maximum length of the output in bytes. Further output is dropped.
    private static let limit = 64 * 1024

    /// Runs a program from `PATH` and waits for its end. The first word is its name. Standard input is empty.
    static func run(_ words: [String]) -> ProgramRun {
        var ends: [Int32] = [-1, -1]
        guard pipe(&ends) == 0 else { return ProgramRun(status: notFound, text: "") }
        defer { close(ends[0]) }
        let process = ChildProcess.start(words, output: ends[1], group: .same)
        close(ends[1])
        guard process > 0 else { return ProgramRun(status: notFound, text: String(cString: strerror(-process))) }
        let text = read(ends[0])
        var status: Int32 = 0
        while waitpid(process, &status, 0) == -1, errno == EINTR {}
        return ProgramRun(status: status & 0x7F == 0 ? status >> 8 & 0xFF : 128 + status & 0x7F, text: text)
    }

    private static func read(_ descriptor: Int32) -> String {
        var bytes: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 4096)
        while true {
            let count = Glibc.read(descriptor, &buffer, buffer.count)
            if count < 0 && errno == EINTR { continue }
            guard count > 0 else { break }
            if bytes.count < limit { bytes += buffer[..<count] }
        }
        while bytes.last == 0x0A || bytes.last == 0x20 { bytes.removeLast() }
        return String(decoding: bytes, as: UTF8.self)
    }
}
