import FaultServer
import Foundation
import Testing

/// Tests which existing file a download replaces: every source of a name, every existing file and every policy.
struct ServerNameReplacementTests {
    /// The source of the file name `git`.
    enum Source: CaseIterable {
        case url, option, disposition, redirect

        var isUsers: Bool { self == .url || self == .option }
        /// The path of the URL that the user gives.
        var path: String { self == .url ? "/git" : "/tool" }
    }

    /// The file `git` before the download.
    enum Existing: CaseIterable {
        case none, foreign, ofSameURL, ofOtherURL, changed
    }

    static let policies = ["fail", "skip", "overwrite", "rename", "update"]
    private static let seed: UInt64 = 7

    /// The expected end of a download, stated without the code that decides.
    private struct Expected {
        var status: Int32 = 0
        var isReplaced = false

        init(_ source: Source, _ existing: Existing, _ policy: String) {
            let replaces = policy == "overwrite" || policy == "update"
            switch existing {
            case .none: isReplaced = true
            case .ofSameURL: isReplaced = replaces
            case .foreign, .changed:
                isReplaced = replaces && source.isUsers
                if policy == "fail" || replaces && !source.isUsers { status = 7 }
            // A download of another URL under a name that was not typed as a file name gets a number.
            case .ofOtherURL:
                isReplaced = replaces && source == .option
                if policy == "fail", source == .option { status = 7 }
            }
        }
    }

    private func server(_ source: Source, _ length: Int64) async throws -> FaultServer {
        let file = Resource(length: length, seed: 1)
        var named = file
        named.fields = [("Content-Disposition", "attachment; filename=\"git\"")]
        let moved = Resource(length: 1, behaviour: .always(.redirect(to: "/git")))
        let tool = [.disposition: named, .redirect: moved][source] ?? file
        return try await FaultServer.start(["/git": file, "/tool": tool, "/other": file])
    }

    private func get(
        _ source: Source, _ policy: String, _ server: FaultServer, _ place: TestDirectory
    ) async throws -> CommandRun.Result {
        let name = source == .option ? ["-o", "git"] : []
        return try await CommandRun.run(
            ["get", "-v", "--if-exists", policy, server.url(source.path)] + name, directory: place.url)
    }

    private func prepare(
        _ existing: Existing, _ source: Source, _ server: FaultServer, _ place: TestDirectory
    ) async throws {
        switch existing {
        case .none: return
        case .foreign: try Data("#!/bin/sh\n".utf8).write(to: place.file("git"))
        case .ofSameURL, .changed: #expect(try await get(source, "fail", server, place).status == 0)
        case .ofOtherURL:
            let words = ["get", "-o", "git", server.url("/other")]
            #expect(try await CommandRun.run(words, directory: place.url).status == 0)
        }
        if existing == .changed {
            let handle = try FileHandle(forWritingTo: place.file("git"))
            try handle.write(contentsOf: Data("#!".utf8))
            try handle.close()
        }
        #expect(chmod(place.path("git"), 0o755) == 0)
    }

    private func isExecutable(_ path: String) -> Bool { access(path, X_OK) == 0 && Self.mode(path) & 0o111 != 0 }

    private static func mode(_ path: String) -> mode_t {
        var status = stat()
        return stat(path, &status) == 0 ? status.st_mode : 0
    }

    @Test(arguments: Source.allCases, [20_000, 3 << 20] as [Int64])
    func theServersNameReplacesNoOtherFile(_ source: Source, _ length: Int64) async throws {
        for existing in Existing.allCases {
            for policy in Self.policies {
                let server = try await server(source, length)
                let place = try TestDirectory()
                try await prepare(existing, source, server, place)
                let before = try? Data(contentsOf: place.file("git"))
                for path in ["/git", "/tool"] where source != .redirect || path == "/git" {
                    server.replace(path, with: Version(seed: Self.seed, length: length, lastModified: 1_800_000_000))
                }
                let result = try await get(source, policy, server, place)
                let expected = Expected(source, existing, policy)
                let text = "\(source) \(existing) \(policy): \(result.status) \(place.names) \(result.stderr)"
                #expect(result.status == expected.status, "\(text)")
                let content = FaultContent(seed: Self.seed)
                let isNew = content.matches(file: place.path("git"), length: length)
                #expect(isNew == expected.isReplaced, "\(text)")
                let after = try? Data(contentsOf: place.file("git"))
                #expect(expected.isReplaced || after == before, "\(text)")
                if existing != .none {
                    #expect(isExecutable(place.path("git")) == (source.isUsers || !expected.isReplaced), "\(text)")
                }
                let command = "tow get --if-exists \(policy) -o git \(server.url("/tool"))"
                let isRefused = expected.status == 7 && policy != "fail"
                #expect(result.stderr.contains(command) == isRefused, "\(text)")
                #expect(result.stderr.contains("-> do not \(policy) the file") == isRefused, "\(text)")
                await server.stop()
            }
        }
    }

    /// The command that the message prints replaces the file. The shell passes each word unchanged.
    @Test func theCommandOfTheMessageWorks() async throws {
        let name = "it's $(touch x) & \"a\".sh"
        var file = Resource(length: 1000, seed: Self.seed)
        let encoded = name.addingPercentEncoding(withAllowedCharacters: .alphanumerics) ?? ""
        file.fields = [("Content-Disposition", "attachment; filename*=UTF-8''\(encoded)")]
        let server = try await FaultServer.start(["/tool": file])
        let place = try TestDirectory()
        let safe = "it's $(touch x) & _a_.sh"
        try FileManager.default.createDirectory(at: place.file("-d"), withIntermediateDirectories: false)
        try Data("mine".utf8).write(to: place.file("-d/\(safe)"))
        let url = server.url("/tool?a=1&token=secret")
        let result = try await CommandRun.run(
            ["get", "-d", "./-d", "--if-exists", "overwrite", url], directory: place.url)
        #expect(result.status == 7 && !result.stderr.contains("secret"), "\(result.stderr)")
        let start = try #require(result.stderr.range(of: ": tow get ")?.lowerBound)
        let line = result.stderr[start...].dropFirst(2).prefix { $0 != "\n" }
        let shell = try await CommandRun(
            ["-c", "tow() { '\(CommandRun.products.path)/tow' \"$@\"; }; \(line)"], directory: place.url,
            program: URL(fileURLWithPath: "/bin/sh")
        ).finish()
        #expect(shell.status == 0, "\(line)")
        #expect(try FaultContent(seed: Self.seed).firstMismatch(inFile: place.path("-d/\(safe)"), length: 1000) == nil)
        #expect(place.names == ["-d"])
        await server.stop()
    }

    /// A list gives names of the user, and files with a server's name stay.
    @Test func aListKeepsFilesWithNamesOfTheServer() async throws {
        let server = try await server(.disposition, 1000)
        let place = try TestDirectory()
        for name in ["git", "mine"] { try Data("old".utf8).write(to: place.file(name)) }
        let list = "\(server.url("/tool"))\n\(server.url("/other"))\n  output=mine\n"
        let result = try await CommandRun.run(
            ["get", "--if-exists", "overwrite", "-i", "-"], input: list, directory: place.url)
        #expect(result.status == 7, "\(result.stderr)")
        #expect(try Data(contentsOf: place.file("git")) == Data("old".utf8))
        #expect(try FaultContent(seed: 1).firstMismatch(inFile: place.path("mine"), length: 1000) == nil)
        await server.stop()
    }
}
