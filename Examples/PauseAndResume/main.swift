// One download with buttons and a progress bar. After a relaunch, the bar shows the earlier progress before anything is
// pressed and before any request is sent. `start` then continues from this progress.
//
//     towline-pause-and-resume FOLDER URL [--url-session]
//
// The buttons are lines on standard input: start, pause, cancel and quit.
import Foundation
import Towline
import TowlineURLSession

let words = CommandLine.arguments.dropFirst().filter { $0 != "--url-session" }
guard words.count == 2, let link = URL(string: words[1]) else {
    say("usage: towline-pause-and-resume FOLDER URL [--url-session]")
    exit(2)
}
let folder = URL(fileURLWithPath: words[0], isDirectory: true)

// The list of downloads is a database in this directory. No server is contacted before the user starts a download.
var configuration = Downloader.Configuration()
configuration.resumesAtLaunch = false
let downloader = try await Downloader(
    stateDirectory: folder.appendingPathComponent("list"), configuration: configuration,
    transport: CommandLine.arguments.contains("--url-session") ? .urlSession() : .curl)

// The same link in the same folder is the same download: after a relaunch, `add` returns the earlier one.
var request = DownloadRequest(from: link, to: .directory(folder))
request.startsPaused = true
let download = try await downloader.add(request)

// The closure receives the current state at once, and then every change, on the main actor.
let observation = download.observe { @MainActor snapshot in show(snapshot) }

// A thread reads standard input, because waiting for a line would block the main actor.
let lines = AsyncStream<String> { input in
    Thread.detachNewThread {
        while let line = readLine() { input.yield(line) }
        input.finish()
    }
}
buttons: for await button in lines {
    do {
        switch button {
        case "start": try await download.start()
        case "pause": try await pauseDownload()
        case "cancel": try await download.cancel()
        case "quit": break buttons
        default: say("buttons: start, pause, cancel, quit")
        }
    } catch {
        say("error: \(error.localizedDescription)")
    }
}

// All bytes are kept, and all threads, connections and files are released.
observation.cancel()
await downloader.close()
say("closed")

/// Pauses the download. Some servers cannot continue a file: the user is warned that it starts over.
func pauseDownload() async throws {
    if try await !download.snapshot.canPauseWithoutLoss { say("the server cannot resume: the file will start over") }
    try await download.pause()
}

/// Shows the progress bar, and the location of the file when the download is finished.
func show(_ snapshot: DownloadSnapshot) {
    MainActor.assertIsolated()
    let fraction = snapshot.fractionCompleted ?? 0
    let filled = Int(fraction * 20)
    let bar = String(repeating: "#", count: filled) + String(repeating: ".", count: 20 - filled)
    // The size is unknown until the server reports it; some servers never do.
    let percent = snapshot.fractionCompleted == nil ? "?" : "\(Int(fraction * 100))"
    let size = snapshot.completeLength.map(String.init) ?? "?"
    let reason = snapshot.reason.map { ": \($0)" } ?? ""
    say("[\(bar)] \(percent)% \(snapshot.heldBytes) of \(size) bytes, \(snapshot.state)\(reason)")
    if snapshot.state == .finished, let file = snapshot.file { say("saved as \(file.path)") }
}

/// Writes a line to standard output at once, also if standard output is a pipe.
func say(_ text: String) { FileHandle.standardOutput.write(Data((text + "\n").utf8)) }
