// Downloads that the end of the program only interrupts: after a kill at any moment, the next launch continues all of
// them. A file can be read, for example played, while it arrives.
//
//     towline-background FOLDER [--url-session]
//
// Commands on standard input: add URL..., play URL FILE, quit. `play` copies the bytes to a file in order, as a player
// would read them.
import Foundation
import Towline
import TowlineURLSession

let words = CommandLine.arguments.dropFirst().filter { $0 != "--url-session" }
guard words.count == 1 else {
    say("usage: towline-background FOLDER [--url-session]")
    exit(2)
}
let folder = URL(fileURLWithPath: words[0], isDirectory: true)

// The downloads that an earlier process left unfinished continue now.
let downloader = try await Downloader(
    stateDirectory: folder.appendingPathComponent("list"),
    transport: CommandLine.arguments.contains("--url-session") ? .urlSession() : .curl)

let events = downloader.events
for try await snapshot in downloader.downloads() { show(snapshot) }
say("ready")
let updates = Task {
    for await event in events {
        switch event {
        case .added(let snapshot), .changed(let snapshot): show(snapshot)
        case .troubled(let error): say("error: \(error.localizedDescription)")
        case .noted, .removed, .listChanged, .missed: break
        }
    }
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
    switch (words.first, words.count) {
    case ("add", 2...): await report { try await downloader.add(contentsOf: words.dropFirst().compactMap(request)) }
    // Playing takes until the end of the download. Commands are read meanwhile.
    case ("play", 3): Task { await report { try await play(words[1], words[2]) } }
    case ("quit", _): break commands
    default: say("commands: add URL..., play URL FILE, quit")
    }
}
updates.cancel()
await downloader.close()

/// The request for a link. Adding the same link again returns the existing download.
func request(_ link: String) -> DownloadRequest? {
    URL(string: link).map { DownloadRequest(from: $0, to: .directory(folder)) }
}

/// Copies the bytes of a download to a file while they arrive. Bytes that the player needs are downloaded first.
func play(_ link: String, _ path: String) async throws {
    guard let request = request(link), let download = try await downloader.find(request) else {
        throw TowlineError(.unknownDownload, "\(link) is not in the list")
    }
    let file = URL(fileURLWithPath: path)
    try Data().write(to: file)
    let player = try FileHandle(forWritingTo: file)
    for try await bytes in try await download.content.bytes() {
        try player.write(contentsOf: bytes)
        say("played \(try player.offset()) bytes of \(link)")
    }
    try player.close()
    say("played all of \(link)")
}

/// Runs a command, and shows its error.
func report(_ command: () async throws -> Void) async {
    do { try await command() } catch { say("error: \(error.localizedDescription)") }
}

func show(_ row: DownloadSnapshot) {
    MainActor.assertIsolated()
    let percent = row.fractionCompleted.map { "\(Int($0 * 100))%" } ?? "?%"
    let size = row.completeLength.map(String.init) ?? "?"
    let reason = row.reason.map { ": \($0)" } ?? ""
    say("\(row.name ?? row.source) \(percent) \(row.heldBytes) of \(size) bytes, \(row.state)\(reason)")
}

/// Writes a line to standard output at once, also if standard output is a pipe.
func say(_ text: String) { FileHandle.standardOutput.write(Data((text + "\n").utf8)) }
