import Glibc
import Testing
import TowlineCore
import TowlineEngine

@testable import TowlineDisk

/// Tests bytes that move from a pipe to a file within the kernel.
@Suite struct PipeWriteTests {
    private let scratch = ScratchDirectory()
    private static let bytes = (0..<50_000).map { UInt8(truncatingIfNeeded: $0 &* 31 ^ $0 >> 8) }

    /// A file of 10 bytes, and a pipe with the bytes and ten more.
    private func with(
        _ syscall: FaultySyscall, _ body: (Descriptor, Int32) throws -> Void
    ) throws {
        var ends: [Int32] = [-1, -1]
        try #require(pipe(&ends) == 0)
        defer { for end in ends { close(end) } }
        let more = Self.bytes + [UInt8](repeating: 0xFF, count: 10)
        try #require(Glibc.write(ends[1], more, more.count) == more.count)
        scratch["file"] = [UInt8](repeating: 0xEE, count: 10)
        let file = try #require(try Folder(scratch.path, syscall: syscall).open("file"))
        defer { file.close() }
        try body(file, ends[0])
    }

    private var expected: [UInt8] { [UInt8](repeating: 0xEE, count: 10) + Self.bytes }

    @Test func theirPlaceIsWhereTheyWereMeantFor() throws {
        try with(FaultySyscall()) { file, pipe in
            try file.write(from: pipe, count: Self.bytes.count, at: 10)
            #expect(scratch["file"] == expected)
            var rest = [UInt8](repeating: 0, count: 100)
            #expect(read(pipe, &rest, 100) == 10, "no more bytes are taken than requested")
        }
    }

    @Test(arguments: [FaultySyscall.Fault.error(EINTR), .short])
    func whatIsInterruptedGoesOn(_ fault: FaultySyscall.Fault) throws {
        try with(FaultySyscall { call, index in call == .splice && index % 2 == 1 ? fault : nil }) { file, pipe in
            try file.write(from: pipe, count: Self.bytes.count, at: 10)
            #expect(scratch["file"] == expected)
        }
    }

    @Test(arguments: [EINVAL, ENOSYS]) func aFileSystemThatCannotGetsThemAsItCan(_ number: Int32) throws {
        for first in [0, 1] {
            let syscall = FaultySyscall()
            try with(syscall) { file, pipe in
                let before = syscall.calls.count
                syscall.setPlan { call, index in
                    guard call == .splice else { return nil }
                    return index - before < first ? .short : .error(number)
                }
                try file.write(from: pipe, count: Self.bytes.count, at: 10)
                #expect(scratch["file"] == expected)
                #expect(syscall.calls.contains(.pwrite))
                let refused = syscall.calls.count { $0 == .splice }
                try file.write(from: pipe, count: 10, at: 0)
                #expect(syscall.calls.count { $0 == .splice } == refused, "the call is not tried again")
                #expect(scratch["file"] == [UInt8](repeating: 0xFF, count: 10) + Self.bytes)
            }
        }
    }

    @Test(arguments: [(ENOSPC, TowlineError.Code.diskFull), (EIO, .diskFailure), (EDQUOT, .diskFull)])
    func whatFailsFails(_ number: Int32, _ code: TowlineError.Code) throws {
        try with(FaultySyscall { call, _ in call == .splice ? .error(number) : nil }) { file, pipe in
            let error = #expect(throws: TowlineError.self) { try file.write(from: pipe, count: 100, at: 10) }
            #expect(error?.code == code)
        }
    }
}
