// A downloader for the terminal: what the tutorials build for a phone, in one screen of commands. It embeds the library
// and nothing else of Towline.
//
//     towline-terminal STATE_DIRECTORY DOWNLOAD_DIRECTORY [--hold]
//
// Commands come on standard input, a line each; lines about downloads go to standard output. With `--hold`, what was
// under way when the program ended stays paused until it is resumed.
import Foundation
import Towline

@main
struct TerminalDownloader {
    static func main() async {
        let words = CommandLine.arguments.dropFirst()
        let paths = words.filter { !$0.hasPrefix("--") }
        guard paths.count == 2, words.allSatisfy({ !$0.hasPrefix("--") || $0 == "--hold" }) else {
            say("usage: towline-terminal STATE_DIRECTORY DOWNLOAD_DIRECTORY [--hold]")
            exit(2)
        }
        do {
            var configuration = Downloader.Configuration()
            configuration.resumesAtLaunch = !words.contains("--hold")
            configuration.networkRetryInterval = .seconds(1)
            let downloader = try await Downloader(
                stateDirectory: URL(fileURLWithPath: paths[0], isDirectory: true), configuration: configuration)
            let screen = Screen(downloader, downloads: URL(fileURLWithPath: paths[1], isDirectory: true))
            await screen.run()
            await downloader.close()
        } catch {
            say("error \(error)")
            exit(1)
        }
    }
}

/// Reads commands and shows what happens.
struct Screen {
    private let downloader: Downloader
    private let downloads: URL

    init(_ downloader: Downloader, downloads: URL) {
        self.downloader = downloader
        self.downloads = downloads
    }

    func run() async {
        for notice in downloader.notices { say("notice \(notice)") }
        let events = downloader.events
        let watcher = Task {
            for await event in events { show(event) }
        }
        say("ready")
        for await line in Self.lines {
            let words = line.split(separator: " ").map(String.init)
            guard let command = words.first else { continue }
            if command == "quit" { break }
            do {
                try await perform(command, Array(words.dropFirst()))
            } catch {
                say("error \(error)")
            }
        }
        watcher.cancel()
    }

    private static var lines: AsyncStream<String> {
        AsyncStream { continuation in
            // Waiting for a line would block a thread that downloads need.
            Thread.detachNewThread {
                while let line = readLine() { continuation.yield(line) }
                continuation.finish()
            }
        }
    }

    private func perform(_ command: String, _ words: [String]) async throws {
        switch (command, words.first) {
        case ("add", let link?): try await add(link, Array(words.dropFirst()))
        case ("list", _):
            for try await snapshot in downloader.downloads() { say(Self.line(snapshot)) }
            say("end")
        case ("start", let name?), ("resume", let name?), ("retry", let name?): try await download(name).start()
        case ("pause", let name?): try await download(name).pause()
        case ("cancel", let name?): try await download(name).cancel()
        case ("remove", let name?): try await download(name).remove()
        case ("limit", let rate?): try await downloader.setRateLimit(Int64(rate) ?? 0)
        case ("history", let name?):
            for note in try await download(name).timeline() { say("note \(note.kind) \(note.message)") }
            say("end")
        default:
            say("commands: add LINK [unpack DIRECTORY], list, start|pause|resume|cancel|retry|remove ID, limit, quit")
        }
    }

    private func add(_ link: String, _ options: [String]) async throws {
        guard let url = URL(string: link) else { return say("error \(link) is no link") }
        var request = DownloadRequest(from: url, to: .directory(downloads))
        if options.first == "unpack", options.count == 2 {
            request.followUps = [.unpack(into: downloads.appendingPathComponent(options[1], isDirectory: true))]
        }
        say("added \(try await downloader.add(request).id)")
    }

    private func download(_ name: String) async throws -> Download {
        guard let id = DownloadID(name), let download = try await downloader.download(id) else {
            throw TowlineError(.unknownDownload, "there is no download \(name)")
        }
        return download
    }

    private func show(_ event: DownloadEvent) {
        switch event {
        case .added(let snapshot), .changed(let snapshot): say(Self.line(snapshot))
        case .removed(let id): say("removed \(id)")
        case .listChanged: say("list changed")
        case .noted(let id, let note): say("note \(id) \(note.kind) \(note.message)")
        case .troubled(let error): say("error \(error)")
        case .missed: break
        }
    }

    /// `ID state percent bar bytes name reason`, the bar as the tutorials draw it.
    private static func line(_ snapshot: DownloadSnapshot) -> String {
        let percent = snapshot.fractionCompleted.map { Int($0 * 100) }
        let filled = (percent ?? 0) / 5
        let bar = String(repeating: "#", count: filled) + String(repeating: ".", count: 20 - filled)
        let bytes = "\(snapshot.heldBytes)/\(snapshot.completeLength.map(String.init) ?? "?")"
        let words = [
            "\(snapshot.id)", "\(snapshot.state)", percent.map { "\($0)%" } ?? "?%", "[\(bar)]", bytes,
            snapshot.name ?? "-", "\(snapshot.followUp)", snapshot.error?.message ?? snapshot.reason,
        ]
        return words.compactMap { $0 }.joined(separator: " ")
    }
}

/// A line on standard output at once, also into a pipe.
func say(_ text: String) { FileHandle.standardOutput.write(Data((text + "\n").utf8)) }
