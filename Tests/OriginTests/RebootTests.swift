import FaultServer
import Foundation
import Testing

/// Row O4: the machine loses power and reboots. The downloads are still in the list and resume.
///
/// The home directory is a file system in an image file. A power failure is simulated by a copy of the image, which
/// lacks the data that was not synced and is then mounted instead. The reboot also changes the boot ID and removes the
/// socket.
@Suite(.serialized, .enabled(if: Disk.canMount, "file systems in files are mounted by root alone"))
struct RebootTests {
    @Test(.timeLimit(.minutes(3))) func o4_aRebootChangesNothing() async throws {
        let root = FileManager.default.temporaryDirectory.appendingPathComponent("reboot-" + UUID().uuidString)
        let disk = try Disk(root)
        var home = try ServiceHome(disk.mounted)
        defer {
            try? home.kill()
            disk.remove()
        }
        home.runtime = try folder(root, "run-1")
        let versions = (0..<6).map { Version(seed: UInt64($0 + 1), length: 3_000_000 + Int64($0) * 500_000) }
        var options = ServerOptions()
        options.sharedRate = 1_500_000
        let resources = versions.enumerated().map { ("/f\($0)", Resource($1)) }
        let server = try await FaultServer.start(Dictionary(uniqueKeysWithValues: resources), options: options)
        let names = try await home.add((0..<6).map { server.url("/f\($0)") })
        #expect(names.count == 6)
        try await waitUntilSynced(home)

        try home.kill()
        await server.refuseConnections()
        await server.closeConnections(reset: true)
        try disk.losePower()
        let asked = server.log.requests.count
        home.runtime = try folder(root, "run-2")
        let identity = root.appendingPathComponent("boot_id")
        try Data((UUID().uuidString.lowercased() + "\n").utf8).write(to: identity)
        home.prelude = "mount --bind '\(identity.path)' /proc/sys/kernel/random/boot_id"
        #expect(try await home.add([server.url("/f0")]).isSubset(of: names))
        let rows = try await home.list()
        #expect(Set(rows.keys) == names)
        let held = rows.values.reduce(0) { $0 + $1.heldBytes }
        #expect(held > 0, "progress before any request: \(rows)")
        #expect(server.log.requests.count == asked)

        let served = server.log.records.bodyBytesServed
        try await server.acceptConnections()
        while try await !home.list().values.allSatisfy({ $0.state == "finished" }) {
            try await Task.sleep(for: .milliseconds(200))
        }
        for (number, version) in versions.enumerated() {
            let file = disk.mounted.appendingPathComponent("Downloads/f\(number)").path
            #expect(try version.content.firstMismatch(inFile: file, length: version.length) == nil)
        }
        // The bytes that the list showed are not downloaded again, except small files and the ends of segments.
        let total = versions.reduce(0) { $0 + $1.length }
        let again = server.log.records.bodyBytesServed - served
        #expect(again <= total - held + 6 * 16 * 64 * 1024, "\(again) of \(total) bytes, \(held) held")
        await server.stop()
    }

    /// A file is published without a sync before a power failure. The file under the final name may have wrong bytes,
    /// and must not be reported as finished.
    @Test(.timeLimit(.minutes(2))) func row82AFinishThatWasNotSynced() async throws {
        let root = FileManager.default.temporaryDirectory.appendingPathComponent("unsynced-" + UUID().uuidString)
        let disk = try Disk(root)
        defer { disk.remove() }
        let version = Version(seed: 82, length: 3_000_000)
        let server = try await FaultServer.start(["/file": Resource(version)])
        let home = try ServiceHome(disk.mounted)
        let command = ["get", "-q", "--no-sync", "-d", disk.mounted.path, server.url("/file")]
        try await home.tow(command)
        // Before the power failure, the download is finished. With `--no-sync`, it is not durable.
        let asked = server.log.requests.count
        try disk.syncNamesAlone()
        try disk.losePower()
        let again = try home.begin(["get", "-q", "-d", disk.mounted.path, server.url("/file")])
        again.waitUntilExit()
        let file = disk.mounted.appendingPathComponent("file").path
        let isRight = try version.content.firstMismatch(inFile: file, length: version.length) == nil
        #expect(again.terminationStatus == 7 || isRight, "a file with wrong bytes was reported as finished")
        #expect(again.terminationStatus == 7 || server.log.requests.count > asked)
        await server.stop()
    }

    /// Waits until a checkpoint has made more than 400,000 bytes of a file durable.
    private func waitUntilSynced(_ home: ServiceHome) async throws {
        let end = ContinuousClock.now + .seconds(30)
        while ContinuousClock.now < end {
            try await Task.sleep(for: .milliseconds(200))
            for number in 0..<6 {
                let file = home.path.appendingPathComponent("Downloads/f\(number)").path
                guard FileManager.default.fileExists(atPath: file + ".tow-journal") else { continue }
                let status = try await home.tow(["status", "--json", file]).first
                let durable = status?["durable"] as? [[Int64]] ?? []
                if durable.reduce(0, { $0 + $1[1] - $1[0] }) > 400_000 { return }
            }
        }
        Issue.record("no checkpoint came")
    }

    private func folder(_ root: URL, _ name: String) throws -> URL {
        let folder = root.appendingPathComponent(name)
        try FileManager.default.createDirectory(
            at: folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        return folder
    }
}
