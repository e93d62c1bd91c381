import Testing

@testable import TowlineDisk

/// The identity of a file system, which must survive a restart of the machine.
@Suite struct FileSystemIdentityTests {
    private static func identity(_ type: Int64, _ id: String?) -> FileSystemIdentity {
        FileSystemIdentity(type: type, id: id)
    }

    @Test func permanentIdentitiesDecide() {
        let disk = Self.identity(0xEF53, "fsid:1:2")
        #expect(disk.isSame(as: disk) && !disk.isSame(as: Self.identity(0xEF53, "fsid:1:3")))
        // The same disk with another driver, such as ntfs3 instead of ntfs-3g.
        #expect(Self.identity(1, "uuid:ab-cd").isSame(as: Self.identity(2, "uuid:ab-cd")))
        #expect(!Self.identity(1, "source:nas:/a").isSame(as: Self.identity(1, "source:nas:/b")))
    }

    /// The type decides if one of the systems did not report an identity.
    @Test func anUnknownIdentityIsNoDifference() {
        let (known, unknown) = (Self.identity(0x5846_5342, "uuid:ab-cd"), Self.identity(0x5846_5342, nil))
        #expect(known.isSame(as: unknown) && unknown.isSame(as: known) && unknown.isSame(as: unknown))
        #expect(!unknown.isSame(as: Self.identity(0xEF53, "fsid:1:2")))
    }

    @Test func aMissingDirectoryHasTheFileSystemOfItsParent() throws {
        let directory = ScratchDirectory()
        let found = try #require(FileSystemIdentity.find(directory.path))
        let missing = try #require(FileSystemIdentity.find(directory.path + "/no/such"))
        #expect(found.isOfDirectory && !missing.isOfDirectory && missing.identity == found.identity)
        #expect(FileSystemIdentity.find("/proc")?.identity.isSame(as: found.identity) == false)
    }
}
