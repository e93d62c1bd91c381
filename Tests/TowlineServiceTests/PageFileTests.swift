import Foundation
import Testing
@testable import TowlineService

/// Every file of the web page is embedded in the binary.
@Suite struct PageFileTests {
    @Test func everyFileOfTheFolderIsEmbeddedAndServed() async throws {
        let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
            .appendingPathComponent("../../Sources/TowlineService/Page").standardizedFileURL
        let names = try FileManager.default.subpathsOfDirectory(atPath: folder.path).filter { name in
            var isDirectory = ObjCBool(false)
            _ = FileManager.default.fileExists(
                atPath: folder.appendingPathComponent(name).path, isDirectory: &isDirectory)
            return !isDirectory.boolValue
        }
        #expect(Set(PageRoutes.files.map(\.name)) == Set(names), "Sources/CPage/CPage.c lists the files of the page")
        let site = try await ServiceSite()
        for file in PageRoutes.files {
            let target = file.name == "index.html" ? "/" : "/page/" + file.name
            let answer = try await RawExchange.send("GET", target, to: .port(site.port))
            #expect(answer.status == 200)
            #expect(answer.body == (try Data(contentsOf: folder.appendingPathComponent(file.name))), "\(file.name)")
            #expect(answer.fields["content-type"] == file.mediaType)
            #expect(file.mediaType != "application/octet-stream", "\(file.name): PageRoutes knows no type for it")
        }
        try await site.stop()
    }
}
