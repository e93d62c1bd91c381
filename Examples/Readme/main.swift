import Foundation
import Towline

let folder = FileManager.default.temporaryDirectory
let downloader = try await Downloader(stateDirectory: folder.appendingPathComponent("my-list"))
let link = URL(string: CommandLine.arguments[1])!
let download = try await downloader.add(DownloadRequest(from: link, to: .directory(folder)))  // again: the same one
let observation = download.observe { print($0.state, $0.fractionCompleted ?? 0) }
try? await download.pause()  // every byte is kept; throws if it is over already
try? await download.resume()  // now, or after a relaunch
for entry in try await downloader.downloads().downloads { print(entry.name ?? entry.source, entry.state) }
do { print("done:", try await download.file.path) } catch { print("failed:", error) }
await downloader.close()
