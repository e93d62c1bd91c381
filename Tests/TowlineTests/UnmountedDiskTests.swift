import FaultServer
import Foundation
import Testing
import TowlineCore
import TowlineEngine

@testable import Towline

/// The disk of a downloads directory is not mounted, or another one is mounted there: the downloads of the directory
/// wait, and write nothing on the other disk.
@Suite(.timeLimit(.minutes(2)), .serialized, .enabled(if: TestDisk.canMount)) struct UnmountedDiskTests {
    private static let version = Version(seed: 52, length: 3_000_000)

    /// A server, and a directory on a disk of its own.
    private struct Place {
        let site: Site
        let directory: URL
        let image: URL
        var disk: TestDisk

        init() async throws {
            site = try await Site([
                "/file": Resource(UnmountedDiskTests.version, rate: 2_000_000),
                "/new": Resource(UnmountedDiskTests.version), "/later": Resource(UnmountedDiskTests.version),
            ])
            directory = site.downloads.appendingPathComponent("disk")
            image = site.root.appendingPathComponent("image")
            disk = try TestDisk(image: image, at: directory)
        }

        func downloader() async throws -> Downloader {
            try await site.downloader { $0.diskRetryInterval = .seconds(0.2) }
        }

        func add(_ path: String = "/file", to downloader: Downloader, below: String = "") async throws -> Download {
            try await downloader.add(
                try site.request(path) {
                    $0.destination = .directory(below.isEmpty ? directory : directory.appendingPathComponent(below))
                    $0.connections = 1
                })
        }

        /// The names in the directory, without the one that each new ext4 file system has.
        var names: [String] {
            let names = (try? FileManager.default.contentsOfDirectory(atPath: directory.path)) ?? []
            return names.filter { $0 != "lost+found" }.sorted()
        }

        func expectFile() throws {
            let path = directory.appendingPathComponent("file").path
            let length = UnmountedDiskTests.version.length
            #expect(try UnmountedDiskTests.version.content.firstMismatch(inFile: path, length: length) == nil)
        }
    }

    private func expectWait(_ download: Download) async throws {
        let waiting = try await download.reaches { $0.state == .waiting(.destination) || $0.isOver }
        #expect(waiting.state == .waiting(.destination), "\(waiting)")
        #expect(waiting.reason?.contains("is not mounted") == true, "\(waiting.reason ?? "")")
    }

    /// The machine restarted without the disk: it was running or paused when the process ended.
    @Test(arguments: [false, true]) func anUnfinishedDownloadWaits(_ isPaused: Bool) async throws {
        var place = try await Place()
        var downloader = try await place.downloader()
        var download = try await place.add(to: downloader)
        try await download.reaches { $0.heldBytes > 1_000_000 }
        if isPaused { try await download.pause() }
        let id = download.id
        await downloader.close()
        try place.disk.unmount()

        downloader = try await place.downloader()
        download = try #require(try await downloader.download(id))
        if isPaused { try await download.start() }
        let requests = place.site.server.log.requests("/file").count
        try await expectWait(download)
        // Asking again is no way around the check.
        try await download.start()
        try await expectWait(download)
        #expect(place.names.isEmpty)
        #expect(place.site.server.log.requests("/file").count == requests)

        place.disk = try TestDisk(image: place.image, at: place.directory)
        let served = place.site.server.log.bodyBytesServed("/file")
        _ = try await download.file
        try place.expectFile()
        #expect(place.site.server.log.bodyBytesServed("/file") - served < 2_100_000, "the bytes on the disk count")
        await downloader.close()
        await place.site.server.stop()
    }

    /// A download that never ran, in a directory of the disk or in one below.
    @Test(arguments: ["", "films/new"]) func aDownloadThatNeverRanWaits(_ below: String) async throws {
        var place = try await Place()
        let directory = below.isEmpty ? place.directory : place.directory.appendingPathComponent(below)
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        let downloader = try await place.downloader()
        let download = try await downloader.add(
            try place.site.request("/file") {
                $0.destination = .directory(directory)
                $0.startsPaused = true
            })
        try place.disk.unmount()
        try await download.start()
        try await expectWait(download)
        #expect(place.names.isEmpty)
        place.disk = try TestDisk(image: place.image, at: place.directory)
        #expect(try await download.file == directory.appendingPathComponent("file"))
        await downloader.close()
        await place.site.server.stop()
    }

    /// A download of a directory on the disk is finished, and no longer in the list. A link that is added later, after
    /// a restart and for another directory of the disk, does not go to the bare mount point.
    @Test(arguments: ["", "films/new"]) func aNewDownloadWaits(_ below: String) async throws {
        var place = try await Place()
        var downloader = try await place.downloader()
        let first = try await place.add(to: downloader)
        _ = try await first.file
        try await first.remove()
        await downloader.close()
        try place.disk.unmount()
        let directory = below.isEmpty ? place.directory : place.directory.appendingPathComponent(below)
        if !below.isEmpty { try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true) }
        let names = place.names

        downloader = try await place.downloader()
        let download = try await place.add("/new", to: downloader, below: below)
        try await expectWait(download)
        let moved = try await downloader.add(try place.site.request("/later") { $0.startsPaused = true })
        try await moved.setDirectory(directory)
        try await moved.start()
        try await expectWait(moved)
        #expect(place.names == names && place.site.server.log.requests("/new").isEmpty)
        place.disk = try TestDisk(image: place.image, at: place.directory)
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        #expect(try await download.file == directory.appendingPathComponent("new"))
        #expect(try await moved.file == directory.appendingPathComponent("later"))
        await downloader.close()
        await place.site.server.stop()
    }

    /// An answer that files are deleted is true: if they cannot be, the download stays in the list.
    @Test(arguments: [true, false]) func filesThatCannotBeDeletedKeepTheDownload(_ isMounted: Bool) async throws {
        var place = try await Place()
        var downloader = try await place.downloader()
        let finished = try await place.add("/new", to: downloader)
        let unfinished = try await place.add(to: downloader)
        _ = try await finished.file
        try await unfinished.reaches { $0.heldBytes > 1_000_000 }
        try await unfinished.pause()
        let ids = [finished.id, unfinished.id]
        await downloader.close()
        let names = place.names
        if isMounted { try place.disk.set(readOnly: true) } else { try place.disk.unmount() }

        downloader = try await place.downloader()
        for id in ids {
            let download = try #require(try await downloader.download(id))
            let error = await #expect(throws: TowlineError.self) { try await download.remove(deletingFiles: true) }
            #expect(isMounted || error?.message.contains("is not mounted") == true, "\(error as Any)")
            #expect(try await downloader.download(id) != nil)
        }
        await #expect(throws: TowlineError.self) { try await downloader.download(unfinished.id)?.cancel() }
        if isMounted {
            try place.disk.set(readOnly: false)
        } else {
            place.disk = try TestDisk(image: place.image, at: place.directory)
        }
        #expect(place.names == names)
        for id in ids { try await downloader.download(id)?.remove(deletingFiles: true) }
        #expect(place.names.isEmpty)
        #expect(try await downloader.page(DownloadQuery()).downloads.isEmpty)
        await downloader.close()
        await place.site.server.stop()
    }

    /// The user gave up the disk. It is enough to say that for one download.
    @Test func newDownloadsUseTheMountPointIfTheUserSaysSo() async throws {
        let place = try await Place()
        let downloader = try await place.downloader()
        _ = try await place.add(to: downloader).file
        try place.disk.unmount()
        let download = try await place.add("/new", to: downloader)
        try await expectWait(download)
        try await download.setDirectory(place.directory)
        _ = try await download.file
        _ = try await place.add("/later", to: downloader).file
        #expect(place.names == ["later", "new"])
        await downloader.close()
        await place.site.server.stop()
    }

    /// A new download uses the disk that is mounted: there is nothing of the download on the earlier one.
    @Test func newDownloadsUseTheDiskThatIsMounted() async throws {
        var place = try await Place()
        let downloader = try await place.downloader()
        _ = try await place.add(to: downloader).file
        try place.disk.unmount()
        place.disk = try TestDisk(image: place.site.root.appendingPathComponent("other"), at: place.directory)
        _ = try await place.add("/new", to: downloader).file
        #expect(place.names == ["new"])
        // From now on, this is the disk of the directory.
        try place.disk.unmount()
        let later = try await place.add("/later", to: downloader)
        try await expectWait(later)
        place.disk = try TestDisk(image: place.site.root.appendingPathComponent("other"), at: place.directory)
        _ = try await later.file
        await downloader.close()
        await place.site.server.stop()
    }

    /// A directory of the same file system is mounted instead of a disk.
    @Test func aBindMountIsMissed() async throws {
        let site = try await Site([
            "/file": Resource(Self.version, rate: 2_000_000), "/new": Resource(Self.version),
        ])
        let real = site.root.appendingPathComponent("real")
        let directory = site.downloads.appendingPathComponent("bind")
        for each in [real, directory] {
            try FileManager.default.createDirectory(at: each, withIntermediateDirectories: true)
        }
        let flag: UInt = 4096  // MS_BIND
        func bind() { #expect(mount(real.path, directory.path, "", flag, nil) == 0) }
        bind()
        let downloader = try await site.downloader { $0.diskRetryInterval = .seconds(0.2) }
        let download = try await downloader.add(
            try site.request("/file") {
                $0.destination = .directory(directory)
                $0.connections = 1
            })
        try await download.reaches { $0.heldBytes > 1_000_000 }
        try await download.pause()
        // A paused download holds no file open. A program that another test starts has copies of all descriptors until
        // it has begun.
        let descriptors = try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd")
        let open = descriptors.compactMap {
            try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/\($0)")
        }
        #expect(!open.contains { $0.hasPrefix(directory.path) }, "\(open)")
        var tries = 0
        while umount(directory.path) != 0 {
            try #require(errno == EBUSY && tries < 100)
            tries += 1
            try await Task.sleep(for: .milliseconds(20))
        }
        try await download.start()
        try await expectWait(download)
        let new = try await downloader.add(try site.request("/new") { $0.destination = .directory(directory) })
        try await expectWait(new)
        #expect(try FileManager.default.contentsOfDirectory(atPath: directory.path).isEmpty)
        bind()
        _ = try await (download.file, new.file)
        #expect(try FileManager.default.contentsOfDirectory(atPath: real.path).sorted() == ["file", "new"])
        #expect(umount(directory.path) == 0)
        await downloader.close()
        await site.server.stop()
    }

    /// The command `refetch`, and adding the finished download again, whose file seems to be missing.
    @Test(arguments: [false, true]) func aFinishedDownloadWaits(_ isAdded: Bool) async throws {
        var place = try await Place()
        let downloader = try await place.downloader()
        let download = try await place.add(to: downloader)
        _ = try await download.file
        try place.disk.unmount()
        if isAdded { _ = try await place.add(to: downloader) } else { try await download.refetch() }
        try await expectWait(download)
        #expect(place.names.isEmpty)
        place.disk = try TestDisk(image: place.image, at: place.directory)
        if isAdded {
            try await download.reaches { $0.isOver }
        } else {
            _ = try await download.file
        }
        try place.expectFile()
        #expect(place.names == ["file"])
        await downloader.close()
        await place.site.server.stop()
    }

    /// Another disk is mounted there, until the user says to continue on it or moves the download.
    @Test(arguments: [false, true]) func anotherDiskIsUsedOnlyIfTheUserSaysSo(_ isMoved: Bool) async throws {
        var place = try await Place()
        let downloader = try await place.downloader()
        let download = try await place.add(to: downloader)
        try await download.reaches { $0.heldBytes > 1_000_000 }
        try await download.pause()
        try place.disk.unmount()
        place.disk = try TestDisk(image: place.site.root.appendingPathComponent("other"), at: place.directory)
        try await download.start()
        try await expectWait(download)
        #expect(place.names.isEmpty)
        let target = isMoved ? place.site.downloads : place.directory
        try await download.setDirectory(target)
        if isMoved { try await download.start() }
        #expect(try await download.file == target.appendingPathComponent("file"))
        #expect(place.names == (isMoved ? [] : ["file"]))
        await downloader.close()
        await place.site.server.stop()
    }

    /// The mount point disappears with the disk, as in /media. A download whose directory was deleted fails: no disk
    /// can bring the directory back.
    @Test(arguments: [false, true]) func aMissingDirectory(_ isDeleted: Bool) async throws {
        let place = try await Place()
        let directory = isDeleted ? place.directory.appendingPathComponent("films") : place.directory
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        let downloader = try await place.downloader()
        let download = try await downloader.add(
            try place.site.request("/file") { $0.destination = .directory(directory) })
        try await download.reaches { $0.heldBytes > 1_000_000 }
        try await download.pause()
        if !isDeleted { try place.disk.unmount() }
        try FileManager.default.removeItem(at: directory)
        try await download.start()
        if isDeleted {
            let end = try await download.reaches { $0.isOver || $0.state == .waiting(.destination) }
            #expect(end.state == .failed && end.error?.code == .unusableDestination, "\(end)")
        } else {
            try await expectWait(download)
        }
        #expect(!FileManager.default.fileExists(atPath: directory.path))
        await downloader.close()
        await place.site.server.stop()
    }
}
