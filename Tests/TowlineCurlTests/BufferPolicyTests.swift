import Testing

@testable import TowlineCurl
@testable import TowlineEngine

@Suite struct BufferPolicyTests {
    /// Users rely on this limit: a SIGKILL costs a connection the bytes carried over between two reads, and those of
    /// the next.
    @Test(arguments: [1, 4, 5, 32, 33, 256, 257, 10_000]) func aKillCosts256KiBAtMost(_ running: Int) {
        let size = BufferPolicy.size(upTo: BufferPolicy.usual, running: running)
        #expect(size + Int(SegmentWriter.markInterval) <= 256 << 10)
        // The buffer holds whole pieces and a shorter one, or fewer bytes than a stage collects.
        #expect(size % WriteStage.piece != 0 || size + WriteStage.size <= 256 << 10)
        // Bytes that are read at once are written at once.
        #expect(size <= WriteStage.size)
    }
}
