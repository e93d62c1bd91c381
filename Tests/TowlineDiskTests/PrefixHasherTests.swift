import TowlineCore
import Testing

@testable import TowlineDisk

@Suite("Hashing while the rest arrives")
struct PrefixHasherTests {
    private let scratch = ScratchDirectory()
    private let length = 5 << 20
    private let bytes: [UInt8]

    init() { bytes = pattern(0..<(5 << 20)) }

    private func makeFile(_ content: [UInt8]) throws -> Descriptor {
        scratch["file"] = content
        return try #require(try Folder(scratch.path, syscall: SystemCalls()).open("file"))
    }

    private func checksum(_ algorithm: Checksum.Algorithm) throws -> Checksum {
        try #require(Checksum(algorithm: algorithm, value: MessageDigest.value(of: bytes, algorithm)))
    }

    /// Waits until the hasher's thread has hashed `count` bytes. The thread sends no notification.
    private func wait(_ hasher: PrefixHasher, for count: Int64) async throws {
        for _ in 0..<2000 where hasher.hashed != count { try await Task.sleep(for: .milliseconds(5)) }
        #expect(hasher.hashed == count)
    }

    @Test("bytes hashed ahead are not read again, and the value is right")
    func ahead() async throws {
        let hasher = PrefixHasher(file: try makeFile(bytes))
        let wanted = [try checksum(.sha256), try checksum(.crc32c)]
        hasher.advance([.sha256, .crc32c], to: 3 << 20)
        try await wait(hasher, for: 3 << 20)
        // If the hasher read the file again, these bytes would change the value.
        scratch.poke("file", at: 100, [0, 0, 0])
        #expect(try await hasher.mismatches(wanted, length: Int64(length)).get() == [])
        // A second request reads the complete file.
        #expect(try await hasher.mismatches(wanted, length: Int64(length)).get().count == 2)
    }

    @Test("pieces are hashed whether they arrive in quick succession or not")
    func pieces() async throws {
        let hasher = PrefixHasher(file: try makeFile(bytes))
        for (piece, pause) in [(1, 5), (2, 120), (3, 5), (4, 60)] as [(Int64, Int)] {
            hasher.advance([.sha256], to: piece << 20)
            try await wait(hasher, for: piece << 20)
            // The time between two pieces decides whether the thread still waits for the next piece.
            try await Task.sleep(for: .milliseconds(pause))
        }
        #expect(try await hasher.mismatches([try checksum(.sha256)], length: Int64(length)).get() == [])
    }

    @Test("discarded bytes are read again")
    func forgets() async throws {
        let hasher = PrefixHasher(file: try makeFile([0, 0, 0] + bytes[3...]))
        hasher.advance([.sha256], to: 3 << 20)
        try await wait(hasher, for: 3 << 20)
        hasher.forget()
        scratch.poke("file", at: 0, Array(bytes[..<3]))
        #expect(try await hasher.mismatches([try checksum(.sha256)], length: Int64(length)).get() == [])
    }

    @Test("a wait for discarded bytes ends with an answer, and a later one succeeds", .timeLimit(.minutes(1)))
    func forgetsWhileSomebodyWaits() async throws {
        let hasher = PrefixHasher(file: try makeFile([0, 0, 0] + bytes[3...]))
        let wanted = [try checksum(.sha256)]
        let total = Int64(length)
        let isGivenUp = Task { await hasher.mismatches(wanted, length: total) }
        for _ in 0..<2000 where hasher.hashed == 0 { await Task.yield() }
        hasher.forget()
        scratch.poke("file", at: 0, Array(bytes[..<3]))
        #expect(try await hasher.mismatches(wanted, length: Int64(length)).get() == [])
        // The first caller gets an answer, whether its value was ready before or not.
        _ = await isGivenUp.value
    }

    @Test("each of two concurrent callers gets an answer", .timeLimit(.minutes(1)))
    func asksTwice() async throws {
        let hasher = PrefixHasher(file: try makeFile(bytes))
        let wanted = [try checksum(.sha256)]
        let total = Int64(length)
        let first = Task { await hasher.mismatches(wanted, length: total) }
        let second = Task { await hasher.mismatches(wanted, length: total) }
        let answers = await [first.value, second.value]
        #expect(answers.contains { (try? $0.get()) == [] })
    }

    @Test("a prefix that got shorter was discarded")
    func shrinks() async throws {
        let hasher = PrefixHasher(file: try makeFile([0, 0, 0] + bytes[3...]))
        hasher.advance([.sha256], to: 3 << 20)
        try await wait(hasher, for: 3 << 20)
        hasher.advance([.sha256], to: 1)
        scratch.poke("file", at: 0, Array(bytes[..<3]))
        hasher.advance([.sha256], to: 4 << 20)
        try await wait(hasher, for: 4 << 20)
        #expect(try await hasher.mismatches([try checksum(.sha256)], length: Int64(length)).get() == [])
    }

    @Test("an algorithm that is wanted later reads from the beginning")
    func another() async throws {
        let hasher = PrefixHasher(file: try makeFile(bytes))
        hasher.advance([.sha256], to: 3 << 20)
        try await wait(hasher, for: 3 << 20)
        let wanted = [try checksum(.md5), try checksum(.sha256)]
        #expect(try await hasher.mismatches(wanted, length: Int64(length)).get() == [])
    }

    @Test("a file that is too short ends with an error, and so does a cancelled wait")
    func failures() async throws {
        let hasher = PrefixHasher(file: try makeFile(bytes))
        hasher.advance([.sha256], to: 100 << 20)
        let wanted = [try checksum(.sha256)]
        guard case .failure(let error) = await hasher.mismatches(wanted, length: 6 << 20) else {
            Issue.record("no error")
            return
        }
        #expect(error.code == .diskFailure)
        #expect(try await hasher.mismatches(wanted, length: Int64(length)).get() == [])
        hasher.cancel()
        guard case .failure(let end) = await hasher.mismatches(wanted, length: Int64(length)) else {
            Issue.record("no end")
            return
        }
        #expect(end.code == .cancelled)
    }
}
