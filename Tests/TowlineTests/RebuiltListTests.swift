import Foundation
import Testing
import TowlineCore
import TowlineDisk
import TowlineEngine

@testable import Towline

/// Tests of a list that was rebuilt from journals.
@Suite struct RebuiltListTests {
    /// The download may belong to a client on another machine, which must not reach services on this machine.
    @Test(arguments: [false, true]) func aRebuiltListKeepsToPublicAddresses(_ isRestricted: Bool) throws {
        let directory = FileManager.default.temporaryDirectory.appendingPathComponent("towline-\(UUID().uuidString)")
            .path
        try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: directory) }
        let storage = FileStorage()
        let record = DownloadRecord(
            source: "http://example.test/file", resolved: "http://example.test/file", name: "file",
            representation: Representation(completeLength: 4 << 20), checksums: [], generation: 1,
            publicAddressesOnly: isRestricted)
        let part = try storage.create(
            Place(directory: directory, name: "file"), record: record, terms: CreateTerms(journaled: true))
        part.sink.close()
        let found = try #require(LocalFiles(storage: storage).orphans(in: directory).first)
        #expect(try StoredRequest.decode(found.options).publicAddressesOnly == isRestricted)
    }
}
