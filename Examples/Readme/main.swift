import Foundation
import Towline

let home = FileManager.default.homeDirectoryForCurrentUser
let downloader = try await Downloader(stateDirectory: home.appendingPathComponent(".my-downloads"))
let link = URL(string: CommandLine.arguments[1])!
let download = try await downloader.add(DownloadRequest(from: link, to: .directory(home)))
let observation = download.observe { snapshot in
    print(snapshot.state, snapshot.fractionCompleted ?? 0)
}
try await download.pause()  // every byte is kept
try await download.resume()  // now, or after a relaunch
print("done:", try await download.file.path)
await downloader.close()
