import Foundation

extension Process {
    /// Runs the program without standard input until it ends, and returns its standard output.
    package func runToEnd() async throws -> Data {
        let output = Pipe()
        standardOutput = output
        standardInput = FileHandle.nullDevice
        try run()
        let data = await withCheckedContinuation { continuation in
            Thread.detachNewThread {
                continuation.resume(returning: output.fileHandleForReading.readDataToEndOfFile())
            }
        }
        waitUntilExit()
        return data
    }
}
