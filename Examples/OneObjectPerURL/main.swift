// One object for each download: a URL in, progress and completion out. The closures run on the main actor.
//
//     towline-one-object-per-url FOLDER
//
// Commands on standard input: open URL, start URL, suspend URL, quit.
import Foundation
import Towline

/// A download of one URL. Objects with the same URL and folder control the same download, also after a relaunch.
@MainActor
final class FileDownload {
    private let download: Download
    private let observation: DownloadObservation
    private var end: DownloadObservation?
    private let completion: @MainActor (Result<URL, any Error>) -> Void

    /// Finds or adds the download of a URL, without starting it. `progress` is called with the progress on the disk,
    /// and then after each change. Its argument is between 0 and 1, or `nil` while the size is unknown.
    init(
        _ url: URL, folder: URL, downloader: Downloader, progress: @escaping @MainActor (Double?) -> Void,
        completion: @escaping @MainActor (Result<URL, any Error>) -> Void
    ) async throws {
        var request = DownloadRequest(from: url, to: .directory(folder))
        request.startsPaused = true
        download = try await downloader.add(request)
        observation = download.observe { @MainActor snapshot in progress(snapshot.fractionCompleted) }
        self.completion = completion
    }

    /// Starts or continues the download, and calls `completion` once when it has ended. The completion of a finished
    /// download is called immediately, and no request is sent.
    func start() async throws {
        try await download.start()
        end = download.whenOver { @MainActor [completion] result in completion(result) }
    }

    /// Stops the download and keeps its bytes. `start` continues it.
    func suspend() async throws { try await download.pause() }
}

guard CommandLine.arguments.count == 2 else {
    say("usage: towline-one-object-per-url FOLDER")
    exit(2)
}
let folder = URL(fileURLWithPath: CommandLine.arguments[1], isDirectory: true)
var configuration = Downloader.Configuration()
configuration.resumesAtLaunch = false
let downloader = try await Downloader(
    stateDirectory: folder.appendingPathComponent("list"), configuration: configuration)
var objects: [URL: FileDownload] = [:]
say("ready")

// A thread reads the commands, because waiting for a line would block the main actor.
let lines = AsyncStream<String> { input in
    Thread.detachNewThread {
        while let line = readLine() { input.yield(line) }
        input.finish()
    }
}
for await line in lines {
    let words = line.split(separator: " ")
    guard words != ["quit"] else { break }
    guard words.count == 2, let url = URL(string: String(words[1])) else {
        say("commands: open URL, start URL, suspend URL, quit")
        continue
    }
    do {
        let object = try await object(url)
        switch words[0] {
        case "start": try await object.start()
        case "suspend": try await object.suspend()
        default: say("\(url) is open")
        }
    } catch { say("error: \(error.localizedDescription)") }
}
// The objects end their observations when they are released.
objects = [:]
await downloader.close()

/// Returns the object of a URL, and creates it at first use.
func object(_ url: URL) async throws -> FileDownload {
    if let object = objects[url] { return object }
    let object = try await FileDownload(url, folder: folder, downloader: downloader) { fraction in
        MainActor.assertIsolated()
        say("\(url) \(fraction.map { "\(Int($0 * 100))%" } ?? "?%")")
    } completion: { result in
        MainActor.assertIsolated()
        switch result {
        case .success(let file): say("\(url) saved as \(file.path)")
        case .failure(let error): say("\(url) failed: \(error.localizedDescription)")
        }
    }
    objects[url] = object
    return object
}

/// Writes a line to standard output at once, also if standard output is a pipe.
func say(_ text: String) { FileHandle.standardOutput.write(Data((text + "\n").utf8)) }
