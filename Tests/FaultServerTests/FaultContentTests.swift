import FaultServer
import Foundation
import Testing

@Suite struct FaultContentTests {
    private let content = FaultContent(seed: 7)

    @Test(arguments: [0, 1, 7, 8, 4095, 4096, 4097, 1_048_572, 1_048_573, 1_048_576, 1 << 41] as [Int64])
    func aRangeIsTheSameHoweverItIsCut(start: Int64) {
        let whole = content.bytes(in: start..<start + 20_000)
        for cut in [1, 3, 8, 4090, 4096, 4100, 19_999] as [Int64] {
            let parts = content.bytes(in: start..<start + cut) + content.bytes(in: start + cut..<start + 20_000)
            #expect(parts == whole)
        }
    }

    @Test(arguments: [1, 4096, 1_048_573, 1_048_576, 1_048_573 * 4096] as [Int64])
    func aShiftIsNoticedWithinTwoPages(shift: Int64) {
        for start in [0, 5, 4095, 123_456_789] as [Int64] {
            let right = content.bytes(in: start..<start + 8192)
            #expect(content.bytes(in: start + shift..<start + shift + 8192) != right)
            #expect(content.firstMismatch(in: right, at: start) == nil)
            #expect(content.firstMismatch(in: right, at: start + shift) != nil)
        }
    }

    @Test func seedsDifferNearlyEverywhere() {
        let (one, other) = (content.bytes(in: 0..<100_000), FaultContent(seed: 8).bytes(in: 0..<100_000))
        #expect(zip(one, other).count { $0 == $1 } < 1000)
        #expect(one == FaultContent(seed: 7).bytes(in: 0..<100_000))
    }

    @Test func aFileIsCheckedToTheByte() async throws {
        try await withDirectory { directory in
            let path = directory + "/file"
            let length: Int64 = 3_000_000
            var bytes = content.bytes(in: 0..<length)
            #expect(FileManager.default.createFile(atPath: path, contents: Data(bytes)))
            let mismatch = try content.firstMismatch(inFile: path, length: length)
            #expect(mismatch == nil)
            #expect(try content.firstMismatch(inFile: path, length: length + 5) == length)
            #expect(try content.firstMismatch(inFile: path, length: length - 5) == length - 5)
            #expect(try content.firstMismatch(inFile: path, range: 100..<length - 5) == nil)
            bytes[2_345_678] ^= 1
            #expect(FileManager.default.createFile(atPath: path, contents: Data(bytes)))
            #expect(try content.firstMismatch(inFile: path, length: length) == 2_345_678)
            #expect(throws: ContentCheckError.open(ENOENT)) {
                try content.firstMismatch(inFile: path + "-not-there", length: 1)
            }
        }
    }
}
