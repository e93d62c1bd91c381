// Large archives over a network that fails: they are downloaded, verified, and then unpacked or moved. The loss of the
// network is an event of its own, and the download continues when the network returns.
//
//     towline-archive FOLDER
//
// Commands on standard input: unpack URL NAME [CHECKSUM], move URL NAME [CHECKSUM], quit. NAME is the new directory or
// file in FOLDER, and CHECKSUM is the SHA-256 of the archive.
import Foundation
import Towline

/// The state of an archive for the screen.
@MainActor
final class ArchiveModel {
    private let download: Download
    private var snapshot: DownloadSnapshot
    private var observations: [DownloadObservation] = []

    init(_ download: Download) async throws {
        self.download = download
        snapshot = try await download.snapshot
        show()
        observations = [
            download.observe { @MainActor [weak self] snapshot in self?.update(snapshot) },
            // Called after the archive is unpacked or moved, with its final location.
            download.whenOver { @MainActor [weak self] result in self?.finish(result) },
        ]
    }

    private func update(_ new: DownloadSnapshot) {
        MainActor.assertIsolated()
        let hadNetwork = snapshot.state != .waiting(.network)
        snapshot = new
        show()
        if hadNetwork, new.state == .waiting(.network) { say("connection lost: \(new.reason ?? new.source)") }
        if !hadNetwork, new.state == .downloading { say("connected again: \(new.source)") }
    }

    private func show() {
        let percent = snapshot.fractionCompleted.map { "\(Int($0 * 100))%" } ?? "?%"
        let size = snapshot.completeLength.map(String.init) ?? "?"
        say("\(snapshot.name ?? snapshot.source) \(percent) \(snapshot.heldBytes) of \(size) bytes, \(snapshot.state)")
    }

    private func finish(_ result: Result<URL, any Error>) {
        do {
            let file = try result.get()
            let size = try FileManager.default.attributesOfItem(atPath: file.path)[.size] ?? 0
            say("ready: \(file.path), \(size) bytes")
        } catch { say("failed: \(snapshot.source): \(error.localizedDescription)") }
    }
}

guard CommandLine.arguments.count == 2 else {
    say("usage: towline-archive FOLDER")
    exit(2)
}
let folder = URL(fileURLWithPath: CommandLine.arguments[1], isDirectory: true)
let downloader = try await Downloader(stateDirectory: folder.appendingPathComponent("list"))
var models: [DownloadID: ArchiveModel] = [:]

say("network: \(downloader.network)")
let network = Task {
    for await state in downloader.networkChanges { say("network: \(state)") }
}
// The archives of an earlier launch continue. Their follow-ups are in the list, too.
for try await snapshot in downloader.downloads() {
    guard let download = try await downloader.download(snapshot.id) else { continue }
    models[download.id] = try await ArchiveModel(download)
}
say("\(models.count) archives")

// A thread reads the commands, because waiting for a line would block the main actor.
let lines = AsyncStream<String> { input in
    Thread.detachNewThread {
        while let line = readLine() { input.yield(line) }
        input.finish()
    }
}
for await line in lines {
    let words = line.split(separator: " ").map(String.init)
    if words == ["quit"] { break }
    do { try await add(words) } catch { say("error: \(error.localizedDescription)") }
}
network.cancel()
models = [:]
await downloader.close()

/// Adds an archive with the action that follows its download.
func add(_ words: [String]) async throws {
    guard 3...4 ~= words.count, let url = URL(string: words[1]) else { return say("commands: unpack, move, quit") }
    let place = folder.appendingPathComponent(words[2])
    var request = DownloadRequest(from: url, to: .directory(folder))
    request.followUps = words[0] == "move" ? [.move(to: place)] : [.unpack(into: place, deletesArchive: true)]
    if words.count == 4 { request.checksum = try Checksum(parsing: "sha256:" + words[3]) }
    let download = try await downloader.add(request)
    models[download.id] = try await ArchiveModel(download)
}

/// Writes a line to standard output at once, also if standard output is a pipe.
func say(_ text: String) { FileHandle.standardOutput.write(Data((text + "\n").utf8)) }
