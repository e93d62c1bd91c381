import Foundation
import Towline

let folder = URL(fileURLWithPath: FileManager.default.currentDirectoryPath)
let downloader = try await Downloader(stateDirectory: folder.appendingPathComponent("download-list"))
let link = URL(string: CommandLine.arguments[1])!
let download = try await downloader.add(DownloadRequest(from: link, to: .directory(folder)))
print("saved as", try await download.file.path)
await downloader.close()
