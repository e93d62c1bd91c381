import Testing

@testable import TowlineCurl
@testable import TowlineEngine

@Suite struct BufferPolicyTests {
    /// What is promised a user: a SIGKILL costs a connection what was carried over from one reading to the next, and the next.
    @Test(arguments: [1, 4, 5, 32, 33, 256, 257, 10_000]) func aKillCosts256KiBAtMost(_ running: Int) {
        let size = BufferPolicy.size(upTo: BufferPolicy.usual, running: running)
        #expect(size + Int(AttemptWriter.markInterval) <= 256 << 10)
        // Whole pieces and a shorter one, or fewer than wait for more.
        #expect(size % WriteStage.piece != 0 || size + WriteStage.size <= 256 << 10)
        // Records of TLS are whole pieces: as many as there is room for, and what was read ahead of them.
        #expect(WriteStage.size + (ReadAhead.length(bufferSize: size) ?? 0) <= 256 << 10)
        // What is read at once is written at once.
        #expect(size <= WriteStage.size)
    }
}
