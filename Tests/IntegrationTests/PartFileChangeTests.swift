import FaultServer
import Foundation
import Glibc
import Testing
import TowlineCore
import TowlineDisk
import TowlineEngine

/// Another program changes the part file while bytes are written to it. No file with other bytes than the server's is
/// published.
@Suite(.timeLimit(.minutes(2)))
struct PartFileChangeTests {
    /// A change of a part file by another program, in the middle of a download.
    enum Change: String, CaseIterable {
        /// The file is truncated; the bytes that arrive later are written behind a hole.
        case truncate
        /// The file is truncated and immediately gets its old length.
        case truncateAndExtend
        /// Another program writes its own bytes from the beginning.
        case rewrite

        func apply(to path: String) throws {
            var status = stat()
            guard stat(path, &status) == 0, Glibc.truncate(path, 0) == 0 else { throw POSIXError(.EIO) }
            switch self {
            case .truncate: break
            case .truncateAndExtend: guard Glibc.truncate(path, status.st_size) == 0 else { throw POSIXError(.EIO) }
            case .rewrite:
                let file = try FileHandle(forWritingTo: URL(fileURLWithPath: path))
                try file.write(contentsOf: Data(repeating: 0x78, count: 100))
                try file.close()
            }
        }
    }

    /// A long file with a journal and a short one without; the last argument is `true` to compare a checksum.
    @Test(arguments: Change.allCases, [(6_000_000, false), (6_000_000, true), (600_000, false), (600_000, true)])
    func aChangedPartFileIsNotPublished(_ change: Change, _ file: (length: Int64, isVerified: Bool)) async throws {
        let length = file.length
        try await Site.with(try await Site(Resource(length: length, rate: length / 3))) { site in
            let right = CRC32C.bigEndian(FaultContent(seed: 1).bytes(in: 0..<length))
            let options = try site.options { options in
                if file.isVerified { options.checksum = Checksum(algorithm: .crc32c, value: right) }
            }
            let download = Download(options, isBatch: false)
            async let outcome = download.run()
            await download.observer.wait { $0.heldBytes > length / 2 }
            try change.apply(to: site.scratch.file("file.bin.tow"))
            let end = await outcome
            try site.expectFile(end)
            #expect(end.says(.restarted), "\(end.notices)")
            #expect(site.scratch.names == ["file.bin"])
        }
    }

    /// The loss of the part file is noticed within about a second, not at the end.
    @Test func aDeletedPartFileIsNoticedWhileBytesArrive() async throws {
        let length: Int64 = 6_000_000
        try await Site.with(try await Site(Resource(length: length, rate: length / 10))) { site in
            let download = Download(try site.options(), isBatch: false)
            async let outcome = download.run()
            await download.observer.wait { $0.heldBytes > length / 10 }
            #expect(unlink(site.scratch.file("file.bin.tow")) == 0)
            let end = await outcome
            try site.expectFile(end)
            #expect(end.says(.restarted), "\(end.notices)")
            #expect(site.served < length * 3 / 2, "\(site.served)")
        }
    }

    /// A part file with a hole is completed: only the missing bytes are fetched again.
    @Test func aHoleOfAPausedDownloadIsFilled() async throws {
        try await Site.with(try await Site()) { site in
            try await site.interrupt(after: Scenario.held)
            let part = site.scratch.file("file.bin.tow")
            var status = stat()
            #expect(stat(part, &status) == 0)
            #expect(truncate(part, 700_000) == 0 && truncate(part, status.st_size) == 0)
            let before = site.served
            let end = try await site.download()
            try site.expectFile(end)
            #expect(!end.says(.restarted))
            #expect(site.served - before < 2_400_000)
        }
    }
}
