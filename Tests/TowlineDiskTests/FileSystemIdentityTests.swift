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

    /// A bind mount has the identity of the file system below its mount point.
    @Test func aMissingMountOfTheSameFileSystemIsADifference() {
        func identity(_ mountPoint: String?, _ inode: UInt64) -> FileSystemIdentity {
            FileSystemIdentity(type: 0xEF53, id: "fsid:1", mountPoint: mountPoint, inode: inode)
        }
        let mounted = identity("/a/films", 7)
        #expect(!identity("/a", 8).isSame(as: mounted) && !identity("/", 8).isSame(as: mounted))
        // A sandbox mounts the directory itself, or the user replaced a directory.
        #expect(identity("/a", 7).isSame(as: mounted) && mounted.isSame(as: identity("/a", 7)))
        #expect(identity("/a/films", 8).isSame(as: mounted) && identity("/a/films/new", 8).isSame(as: mounted))
        #expect(identity("/a/film", 8).isSame(as: mounted) && identity(nil, 8).isSame(as: mounted))
        #expect(identity("/", 8).isSame(as: identity("/", 7)))
    }

    @Test func theMountPointIsTheNearest() throws {
        let found = try #require(FileSystemIdentity.find("/proc/sys/no/such"))
        #expect(found.identity.mountPoint?.hasPrefix("/proc") == true)
        #expect(FileSystemIdentity.find("/")?.identity.mountPoint == "/")
    }

    @Test func aMissingDirectoryHasTheFileSystemOfItsParent() throws {
        let directory = ScratchDirectory()
        let found = try #require(FileSystemIdentity.find(directory.path))
        let missing = try #require(FileSystemIdentity.find(directory.path + "/no/such"))
        #expect(found.isOfDirectory && !missing.isOfDirectory && missing.identity == found.identity)
        #expect(FileSystemIdentity.find("/proc")?.identity.isSame(as: found.identity) == false)
    }
}
