// Many downloads in one list, each with a percentage. The list survives a relaunch, and a finished file sends no
// request, even if its link is added again.
//
//     towline-file-list FOLDER
//
// Commands on standard input: add URL..., start [NUMBER], pause [NUMBER], cancel NUMBER, remove NUMBER, list, quit.
// Without a number, `start` and `pause` affect all downloads.
import Foundation
import Towline

guard CommandLine.arguments.count == 2 else {
    say("usage: towline-file-list FOLDER")
    exit(2)
}
let folder = URL(fileURLWithPath: CommandLine.arguments[1], isDirectory: true)
var configuration = Downloader.Configuration()
configuration.resumesAtLaunch = false
let downloader = try await Downloader(
    stateDirectory: folder.appendingPathComponent("list"), configuration: configuration)
var rows: [DownloadSnapshot] = []

// The events begin before the list is read, so that no change is missed.
let events = downloader.events
try await readList()
let updates = Task {
    for await event in events { try await apply(event) }
}

// A thread reads the commands, because waiting for a line would block the main actor.
let lines = AsyncStream<String> { input in
    Thread.detachNewThread {
        while let line = readLine() { input.yield(line) }
        input.finish()
    }
}
commands: for await line in lines {
    let words = line.split(separator: " ").map(String.init)
    do {
        switch (words.first, words.dropFirst().first) {
        case ("add", .some): try await add(words.dropFirst().compactMap { URL(string: $0) })
        case ("start", nil): try await downloader.startAll()
        case ("pause", nil): try await downloader.pauseAll()
        case ("start", let number?): try await download(number).start()
        case ("pause", let number?): try await download(number).pause()
        case ("cancel", let number?): try await download(number).cancel()
        case ("remove", let number?): try await download(number).remove(deletingFiles: true)
        case ("list", nil): rows.forEach(show)
        case ("quit", nil): break commands
        default: say("commands: add, start, pause, cancel, remove, list, quit")
        }
    } catch { say("error: \(error.localizedDescription)") }
}
updates.cancel()
await downloader.close()

/// Adds all links in one transaction, and starts them. A link that is in the list already adds nothing.
func add(_ links: [URL]) async throws {
    let requests = links.map { DownloadRequest(from: $0, to: .directory(folder)) }
    for snapshot in try await downloader.snapshots(of: downloader.add(contentsOf: requests)) {
        say("\(snapshot.state == .finished ? "already complete" : "added"): \(snapshot.source)")
    }
}

/// Returns the download with a number of the list.
func download(_ number: String) async throws -> Download {
    let id = Int(number).flatMap { rows.indices.contains($0 - 1) ? rows[$0 - 1].id : nil }
    if let id, let download = try await downloader.download(id) { return download }
    throw TowlineError(.unknownDownload, "the list has no download \(number)")
}

/// Reads the list and the progress of each download from the disk, and shows them. Sends no request.
func readList() async throws {
    rows = []
    for try await snapshot in downloader.downloads() { show(snapshot) }
    say("\(rows.count) files")
}

func apply(_ event: DownloadEvent) async throws {
    switch event {
    case .added(let snapshot), .changed(let snapshot): show(snapshot)
    case .removed(let id): rows.removeAll { $0.id == id }
    case .listChanged: try await readList()
    case .troubled(let error): say("error: \(error.localizedDescription)")
    case .noted, .missed: break
    }
}

/// Shows a new or changed row of the list.
func show(_ row: DownloadSnapshot) {
    MainActor.assertIsolated()
    let number = rows.firstIndex { $0.id == row.id } ?? rows.count
    if number == rows.count { rows.append(row) } else { rows[number] = row }
    let percent = row.fractionCompleted.map { "\(Int($0 * 100))%" } ?? "?%"
    let size = row.completeLength.map(String.init) ?? "?"
    let reason = row.reason.map { ": \($0)" } ?? ""
    say("\(number + 1) \(row.name ?? row.source) \(percent) \(row.heldBytes) of \(size) bytes, \(row.state)\(reason)")
}

/// Writes a line to standard output at once, also if standard output is a pipe.
func say(_ text: String) { FileHandle.standardOutput.write(Data((text + "\n").utf8)) }
