import Foundation
import Synchronization
import Testing

@testable import tow

/// The first line is written at once; lines that follow within moments are written together.
@Suite(.timeLimit(.minutes(1)))
struct OutputPumpTests {
    /// A source of lines for a pump. It counts how often the pump takes some.
    private final class Source: Sendable {
        private let state = Mutex((text: "", takings: 0))

        var takings: Int { state.withLock { $0.takings } }

        func add(_ line: String) { state.withLock { $0.text += line + "\n" } }

        func take() -> String {
            state.withLock { state in
                defer { state.text = "" }
                if !state.text.isEmpty { state.takings += 1 }
                return state.text
            }
        }
    }

    private let source = Source()
    private let pipe = Pipe()
    private let pump: OutputPump

    init() {
        let source = source
        pump = OutputPump(descriptor: pipe.fileHandleForWriting.fileDescriptor, interval: nil) { _ in source.take() }
    }

    /// Waits for the next line and returns it.
    private func nextLine() -> String {
        var line: [UInt8] = []
        var byte: UInt8 = 0
        while read(pipe.fileHandleForReading.fileDescriptor, &byte, 1) == 1, byte != 0x0A { line.append(byte) }
        return String(decoding: line, as: UTF8.self)
    }

    /// The pump is not finished here, so the test would hang if a wake-up got lost.
    @Test func eachLineComesThoughNothingFollows() {
        for number in 0..<300 {
            source.add("\(number)")
            pump.wake()
            #expect(nextLine() == "\(number)")
            // Now and then the next line arrives after the pump has gone to sleep.
            if number % 30 == 0 { usleep(12_000) }
        }
        pump.finish()
    }

    @Test func manyLinesGoOutInFewWrites() {
        let began = ContinuousClock.now
        for number in 0..<400 {
            source.add("\(number)")
            pump.wake()
            // The lines follow each other in less time than the pump gathers them.
            usleep(50)
        }
        let lasted = ContinuousClock.now - began
        pump.finish()
        for number in 0..<400 { #expect(nextLine() == "\(number)") }
        #expect(source.takings <= 3 + Int(lasted / .milliseconds(5)), "in \(lasted)")
    }

    @Test func whatCameLastIsThereWhenItHasFinished() {
        source.add("first")
        pump.wake()
        #expect(nextLine() == "first")
        source.add("last")
        pump.finish()
        #expect(nextLine() == "last")
    }
}
