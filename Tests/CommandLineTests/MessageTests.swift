import FaultServer
import Foundation
import Testing

/// Tests the error messages of the built command: what is wrong, what is kept, and what to do next.
struct MessageTests {
    private static let mebibyte: Int64 = 1 << 20

    private func file(_ behaviour: Behaviour = .correct, rate: Int64? = nil) -> Resource {
        Resource(length: 3 << 20, seed: 7, rate: rate, behaviour: behaviour)
    }

    // MARK: Before a request

    @Test(arguments: [
        (["--frobnicate", "3"], "Unknown option '--frobnicate'"),
        (["--conections", "3"], "Did you mean '--connections'?"),
        (["--frobnicate=3"], "Unknown option '--frobnicate'"), (["-x", "0", "--frobnicate", "3"], "'--frobnicate'"),
    ])
    func anUnknownOptionIsNamedWhateverFollowsIt(_ options: [String], _ expected: String) async throws {
        let result = try await CommandRun.run(["get"] + options + ["http://a.test/"])
        #expect(result.status == 2)
        #expect(result.stderr.contains(expected), "\(result.stderr)")
        #expect(result.stderr.contains("Usage: tow get"))
        #expect(!result.stderr.contains("URL does not"))
    }

    /// Options of curl, wget and aria2 that users may type.
    @Test(arguments: [
        (["get", "--retry=3"], "Unknown option '--retry': use --max-tries"),
        (["get", "-q", "-O", "x.iso"], "-O: in wget, -O FILE names the file; use -o FILE"),
        (["get", "-c", "jar"], "-c: in curl, -c FILE stores cookies; use --save-cookies FILE"),
        (["get", "-x", "http://u:p@proxy:3128"], "-x: in curl, -x sets a proxy; use --proxy URL"),
        (["get", "-d", "a=1"], "In curl, -d sends a request body"),
        ([], "run 'tow get http://a.test/'"), (["gett"], "run 'tow get http://a.test/'"),
    ])
    func aHabitIsAnsweredWithWhatDoesItHere(_ words: [String], _ expected: String) async throws {
        let result = try await CommandRun.run(words + ["http://a.test/"])
        #expect(result.status == 2)
        #expect(result.stderr.contains(expected), "\(result.stderr)")
        #expect(!result.stderr.contains("Did you mean"))
    }

    @Test(arguments: [
        (["gett", "x"], "'gett' is not a tow command. Did you mean 'tow get'?"),
        (["stauts", "x"], "'stauts' is not a tow command. Did you mean 'tow status'?"),
        (["lst"], "'lst' is not a tow command. Did you mean 'tow list'?"),
        (["rm", "x"], "'rm' is not a tow command. Did you mean 'tow remove'?"),
        (["zzz"], "'zzz' is not a tow command.\n"),
    ])
    func aCommandThatIsNoneIsCalledThat(_ words: [String], _ expected: String) async throws {
        let result = try await CommandRun.run(words)
        #expect(result.status == 2)
        #expect(result.stderr.contains(expected), "\(result.stderr)")
        #expect(result.stderr.contains("Usage: tow"))
    }

    /// Lists that were written for aria2.
    @Test(arguments: [
        ("out=x", "option 'out' is not supported in a list of URLs. Use 'output'"),
        ("dir=x", "option 'dir' is not supported in a list of URLs. Use 'directory'"),
        ("split=4", "option 'split' is not supported in a list of URLs. Use 'connections'"),
        ("allow-overwrite=true", "option 'allow-overwrite' is not supported in a list of URLs"),
    ])
    func aListOfAnotherProgramsIsAnsweredAlike(_ line: String, _ expected: String) async throws {
        let place = try TestDirectory()
        let list = "http://a.test/1\n  \(line)\n"
        let result = try await CommandRun.run(["get", "-i", "-"], input: list, directory: place.url)
        #expect(result.status == 2)
        #expect(result.stderr.contains(expected), "\(result.stderr)")
        #expect(place.names.isEmpty)
    }

    @Test(arguments: [
        ("http://[::1/x", "the IPv6 address in the URL must end with ]"),
        ("http://[::1", "the IPv6 address in the URL must end with ]"),
        ("http://[::g]/x", "the text between [ and ] in the URL must be a valid IPv6 address"),
        ("http://[::1]x/", "only a port or a path may follow the ] of the IPv6 address"),
        ("http:///x", "the URL must have a host name"),
    ])
    func aURLThatIsNoneSaysWhatIsWrong(_ url: String, _ expected: String) async throws {
        let result = try await CommandRun.run(["get", url])
        #expect(result.status == 2)
        #expect(result.stderr.contains(expected), "\(result.stderr)")
        #expect(result.stderr.contains("See 'tow get --help'"))
    }

    @Test(arguments: ["fail", "overwrite", "rename", "skip"])
    func aDirectoryIsNoFileToMake(_ policy: String) async throws {
        let server = try await FaultServer.start(["/data.bin": file()])
        let place = try TestDirectory()
        try FileManager.default.createDirectory(at: place.file("out"), withIntermediateDirectories: false)
        for output in [["-o", "out"], ["-d", "../" + place.url.lastPathComponent, "-o", "out"]] {
            let result = try await CommandRun.run(
                ["get", "--if-exists", policy] + output + [server.url("/data.bin")], directory: place.url)
            #expect(result.status == 2)
            #expect(result.stderr.contains("-o 'out' is a directory. Use -d"), "\(result.stderr)")
        }
        #expect(place.names == ["out"])
        #expect(server.log.requests.isEmpty)
        await server.stop()
    }

    /// Some file systems do not count their space: a file system that reports zero blocks is not full.
    @Test func aDirectoryThatTakesNoFilesIsNotCalledFull() async throws {
        let server = try await FaultServer.start(["/data.bin": file()])
        let result = try await CommandRun.run(["get", "-d", "/proc", server.url("/data.bin")])
        #expect(result.status == 6)
        #expect(!result.stderr.contains("are free") && result.stderr.contains("/proc"), "\(result.stderr)")
        await server.stop()
    }

    // MARK: status

    @Test func statusTellsWhatIsThere() async throws {
        let server = try await FaultServer.start(["/data.bin": file()])
        let place = try TestDirectory()
        _ = try await CommandRun.run(["get", server.url("/data.bin")], directory: place.url)
        try Data("mine".utf8).write(to: place.file("mine"))
        try Data("some".utf8).write(to: place.file("small.tow"))
        let cases: [(String, Int32, String, String)] = [
            ("data.bin", 0, "finished: the file is complete", "finished"),
            ("data.bin.tow", 0, "finished: the file is complete", "finished"),
            ("mine", 1, "not a known download", "ordinary"),
            ("small", 0, "no. Run 'tow get' again to restart it", "unfinished"),
        ]
        for (name, status, text, state) in cases {
            let result = try await CommandRun.run(["status", name], directory: place.url)
            #expect(result.status == status && result.text.contains(text), "\(result)")
            let json = try await CommandRun.run(["status", "--json", name], directory: place.url)
            #expect(try json.objects.first?["state"] as? String == state)
            #expect(json.status == status)
        }
        for (name, text) in [
            ("none", "does not exist, and no unfinished"), (".", "not a regular file"), ("no/dir/x", "does not exist"),
        ] {
            let result = try await CommandRun.run(["status", name], directory: place.url)
            #expect(result.status == 6 && result.stderr.contains(text), "\(result)")
        }
        // A file that was changed afterwards is no longer the downloaded one.
        try Data("changed".utf8).write(to: place.file("data.bin"))
        #expect(try await CommandRun.run(["status", "data.bin"], directory: place.url).status == 1)
        await server.stop()
    }

    // MARK: Failures

    /// The error appears once, not for each download of a long list.
    @Test(arguments: ["no/such", "file"]) func aDirectoryThatIsNotThereIsSaidOnce(_ directory: String) async throws {
        let place = try TestDirectory()
        try Data("x".utf8).write(to: place.file("file"))
        let list = (0..<20).map { "http://127.0.0.1:1/\($0)\n" }.joined()
        let result = try await CommandRun.run(
            ["get", "-i", "-", "-d", directory], input: list, directory: place.url)
        #expect(result.status == 6)
        let lines = result.stderr.split(separator: "\n")
        #expect(lines.count == 1 && lines[0].contains("\(directory) does not exist or is not a directory"), "\(result)")
    }

    @Test func aWrongChecksumShowsBothAndWhereTheBytesAre() async throws {
        let server = try await FaultServer.start(["/data.bin": file()])
        let place = try TestDirectory()
        let expected = "crc32c:00000001"
        // The second run replaces the file of the first.
        for bad in ["data.bin.tow-bad", "data.bin.tow-bad"] {
            let result = try await CommandRun.run(
                ["get", "--checksum", expected, server.url("/data.bin")], directory: place.url)
            #expect(result.status == 5)
            let found = result.stderr.firstMatch(of: /expected crc32c:00000001, got (crc32c:[0-9a-f]{8})/)?.1
            #expect(found != nil && found.map(String.init) != expected, "\(result.stderr)")
            #expect(result.stderr.contains("kept as ./\(bad)\n"), "\(result.stderr)")
            #expect(place.names == [bad])
            // The reported checksum is the one that would have matched.
            let right = try await CommandRun.run(
                [
                    "get", "-o", "right", "--if-exists", "overwrite", "--checksum", String(found ?? ""),
                    server.url("/data.bin"),
                ], directory: place.url)
            #expect(right.status == 0, "\(right.stderr)")
            try FileManager.default.removeItem(at: place.file("right"))
        }
        let status = try await CommandRun.run(["status", "data.bin"], directory: place.url)
        #expect(status.status == 6 && status.stderr.contains("kept as data.bin.tow-bad"), "\(status.stderr)")
        await server.stop()
    }

    @Test func aLostNetworkSaysWhatIsKept() async throws {
        let behaviour = Behaviour.first(
            1, .always(.shortBody(after: 2 * Self.mebibyte)), then: .always(.closeBeforeHead))
        let server = try await FaultServer.start(["/data.bin": file(behaviour)])
        let place = try TestDirectory()
        let arguments = ["get", "-x", "1", "--max-tries", "2", "--retry-wait", "0.01", server.url("/data.bin")]
        let result = try await CommandRun.run(arguments, directory: place.url)
        #expect(result.status == 3)
        let kept = "2.0 MiB of 3.0 MiB are kept. Run the same command again to resume."
        #expect(result.stderr.contains(kept), "\(result.stderr)")
        server.set(.correct, for: "/data.bin")
        let again = try await CommandRun.run(arguments, directory: place.url)
        #expect(again.status == 0 && again.stderr.contains(" MiB in total)"), "\(again.stderr)")
        server.set(.always(.closeBeforeHead), for: "/data.bin")
        let nothing = try await CommandRun.run(["get", "-o", "b"] + arguments.dropFirst(), directory: place.url)
        #expect(nothing.status == 3 && nothing.stderr.contains("No data was saved"), "\(nothing.stderr)")
        await server.stop()
    }

    @Test func aRetryIsSaidOnce() async throws {
        // The request without Range that follows the first one is sent at once, and counts.
        let server = try await FaultServer.start(["/data.bin": file(.first(2, .closeBeforeHead))])
        let place = try TestDirectory()
        let result = try await CommandRun.run(
            ["get", "--retry-wait", "0.5", server.url("/data.bin")], directory: place.url)
        #expect(result.status == 0)
        let said = result.stderr.split(separator: "\n").filter { $0.contains("retrying in") }
        #expect(said.count == 1 && said[0].contains(", attempt 1 of 20; retrying in 0."), "\(result.stderr)")
        await server.stop()
    }

    @Test func aNameThatIsTakenSaysWhichOptionDecides() async throws {
        let server = try await FaultServer.start(["/data.bin": file()])
        let place = try TestDirectory()
        try Data("mine".utf8).write(to: place.file("data.bin"))
        let result = try await CommandRun.run(
            ["get", "--if-exists", "fail", server.url("/data.bin")], directory: place.url)
        #expect(result.status == 7)
        let text = "tow: data.bin already exists and is not known to come from this URL"
        #expect(result.stderr.contains(text), "\(result.stderr)")
        #expect(result.stderr.contains("--if-exists overwrite or rename"), "\(result.stderr)")
        await server.stop()
    }

    @Test func severalEndWithASummary() async throws {
        let server = try await FaultServer.start(["/a": file(), "/b": file()])
        let place = try TestDirectory()
        let result = try await CommandRun.run(
            ["get", "--max-tries", "1", server.url("/a"), server.url("/b"), server.url("/none")],
            directory: place.url)
        #expect(result.status == 8)
        let last = result.stderr.split(separator: "\n").last ?? ""
        #expect(last.hasPrefix("2 done, 1 failed; 6.0 MiB in "), "\(result.stderr)")
        await server.stop()
    }

    /// The failures of a long list are repeated at the end, where users see them.
    @Test(arguments: [3, 104]) func whatFailedOfManyIsNamedAtTheEnd(_ failing: Int) async throws {
        let server = try await FaultServer.start(["/good/*": Resource(length: 100)])
        let place = try TestDirectory()
        let urls = (1...failing).map { server.url("/none\($0)") } + (1...40).map { server.url("/good/\($0)") }
        let result = try await CommandRun.run(
            ["get", "--max-tries", "1", "-j", "2", "-i", "-"], input: urls.joined(separator: "\n"), directory: place.url
        )
        #expect(result.status == 8)
        let last = result.stderr.split(separator: "\n").suffix(1 + min(failing, 101))
        let named = last.filter {
            $0.hasPrefix("failed: standard input, line ") && $0.contains("/none") && $0.contains("404")
        }
        #expect(named.count == min(failing, 100), "\(last)")
        let others: Substring = "failed: 4 more downloads. See the messages above; -q prints failures only"
        #expect(last.contains(others) == (failing == 104), "\(last)")
        #expect(last.last?.hasPrefix("40 done, \(failing) failed; ") == true, "\(last)")
        let quiet = try await CommandRun.run(
            ["get", "--max-tries", "1", "-q", "-i", "-"], input: urls.joined(separator: "\n"), directory: place.url)
        #expect(quiet.stderr.split(separator: "\n").count == failing, "\(quiet.stderr)")
        await server.stop()
    }

    /// Each failure is reported with its line in the list, for people and for programs.
    @Test func whatFailedIsFoundInItsList() async throws {
        let server = try await FaultServer.start(["/a": Resource(length: 100), "/b": Resource(length: 100)])
        let place = try TestDirectory()
        try Data("mine".utf8).write(to: place.file("b"))
        try Data("# first\n\(server.url("/a"))\n\n\(server.url("/none?token=x"))\n".utf8).write(to: place.file("l1"))
        try Data("  \(server.url("/a"))\n\(server.url("/b"))\n".utf8).write(to: place.file("l2"))
        try Data("# nothing\n".utf8).write(to: place.file("l3"))
        let arguments = ["get", "--max-tries", "1", "-i", "l1", "-i", "l2", "-i", "l3"]
        let result = try await CommandRun.run(arguments, directory: place.url)
        #expect(result.status == 1)
        let lines = result.stderr.split(separator: "\n").map(String.init)
        #expect(lines.contains { $0.hasPrefix("tow: l1, line 4: http://") && $0.contains("404") }, "\(lines)")
        #expect(lines.contains { $0.hasPrefix("tow: l2, line 1: this URL is not downloaded because") }, "\(lines)")
        #expect(lines.contains { $0.hasPrefix("tow: l2, line 2: ") && $0.contains("b already exists") }, "\(lines)")
        #expect(lines.last?.hasPrefix("tow: l3 contains no URLs") == true, "\(lines)")
        #expect(lines.contains { $0.hasPrefix("1 done, 3 failed; ") }, "\(lines)")
        let again = try await CommandRun.run(arguments + ["--json"], directory: place.url)
        #expect(again.text.contains(#""event":"failed""#) && again.text.contains(#""list":"l1","line":4"#))
        #expect(again.stderr.wholeMatch(of: /tow: l3 contains no URLs.*\n/) != nil, "\(again.stderr)")
        let missing = try await CommandRun.run(["get", "-i", "l1", "-i", "l4"], directory: place.url)
        #expect(missing.status == 2 && missing.stderr.contains("'l4'"), "\(missing.stderr)")
        #expect(server.log.requests("/a").count == 1)
        await server.stop()
    }

    @Test func aFullDiskIsToldInHumanSizes() async throws {
        let server = try await FaultServer.start(["/data.bin": Resource(length: 1 << 55, seed: 7)])
        let place = try TestDirectory()
        let result = try await CommandRun.run(["get", server.url("/data.bin")], directory: place.url)
        #expect(result.status == 6)
        #expect(result.stderr.contains("needs 32.0 PiB"), "\(result.stderr)")
        #expect(result.stderr.firstMatch(of: /\d{8}/) == nil, "\(result.stderr)")
        #expect(place.names == [])
        await server.stop()
    }

    /// The second download of the same URL waits for the first and finds the file; a later one also finds it.
    @Test(arguments: ["fail", "overwrite"]) func theSameURLOnceMoreIsTheSameDownload(_ policy: String) async throws {
        let server = try await FaultServer.start(["/data.bin": file(rate: 4 << 20), "/b": file()])
        let place = try TestDirectory()
        try FileManager.default.createDirectory(at: place.file("out"), withIntermediateDirectories: false)
        try Data("old".utf8).write(to: place.file("out/b"))
        let (url, other) = (server.url("/data.bin"), server.url("/b"))
        let result = try await CommandRun.run(
            ["get", "-d", "out//", "-x", "1", "-j", "2", "--if-exists", policy, url, url, url, other],
            directory: place.url)
        // The file that existed before remains the user's, unless it is to be overwritten.
        #expect(result.status == (policy == "fail" ? 7 : 0), "\(result.stderr)")
        #expect(result.stderr.components(separatedBy: "already downloaded (3.0 MiB); not downloaded again").count == 3)
        #expect(!result.stderr.replacing("://", with: ":").contains("//"), "\(result.stderr)")
        #expect(try FaultContent(seed: 7).firstMismatch(inFile: place.path("out/data.bin"), length: 3 << 20) == nil)
        #expect(try FileManager.default.contentsOfDirectory(atPath: place.path("out")).sorted() == ["b", "data.bin"])
        #expect(server.log.requests("/data.bin").count == 1)
        await server.stop()
    }

    /// If the first fails, each of the others tries; two URLs that want the same name are still two downloads.
    @Test func theSameURLOnceMoreFailsByItself() async throws {
        let server = try await FaultServer.start(["/data.bin": file(rate: 2 << 20)])
        let place = try TestDirectory()
        let none = server.url("/none")
        let failed = try await CommandRun.run(
            ["get", "--max-tries", "1", "-j", "2", none, none], directory: place.url)
        #expect(failed.status == 8)
        #expect(failed.stderr.contains("0 done, 2 failed"), "\(failed.stderr)")
        // Each download sends another request without Range, because the Range may be the reason for a refusal.
        #expect(server.log.requests("/none").map { $0.info.field("Range") != nil } == [true, false, true, false])

        let list = "\(server.url("/data.bin?a"))\n  output=same\n\(server.url("/data.bin?b"))\n  output=same\n"
        let refused = try await CommandRun.run(["get", "-x", "1", "-i", "-"], input: list, directory: place.url)
        #expect(refused.status == 9)
        #expect(refused.stderr.contains("same is already the destination of another download"))
        #expect(!refused.stderr.contains("process"))
        await server.stop()
    }

    /// Whatever may be overwritten, one command does not replace its own file with that of another URL.
    @Test(arguments: ["rename", "overwrite", "update", "skip", "fail"]) func twoURLsForOneFile(
        _ policy: String
    ) async throws {
        let small = Resource(length: 5000, seed: 8)
        let server = try await FaultServer.start(["/a": file(), "/b": small, "/c": small])
        let (a, b, c) = (server.url("/a"), server.url("/b"), server.url("/c"))
        let statuses: [String: Int32] = ["rename": 0, "overwrite": 9, "update": 9, "skip": 0, "fail": 7]
        // The first entry is `a` or `c`, a large or a small file, under a name of the user or of the URL.
        let lists = [
            (a, "same", "\(a)\n  output=same\n\(b)\n  output=same\n"),
            (c, "same", "\(c)\n  output=same\n\(a)\n  output=same\n"),
            (a, "sub/one", "\(a)\n  output=sub/one\n\(b)\n  output=./sub//one\n"),
            (a, "a", "\(a)\n\(b)\n  output=a\n"), (c, "c", "\(c)\n\(a)\n  output=./c\n"),
        ]
        for (first, name, list) in lists {
            let place = try TestDirectory()
            try FileManager.default.createDirectory(at: place.file("sub"), withIntermediateDirectories: false)
            // With one download at a time, the first has ended when the second begins.
            let result = try await CommandRun.run(
                ["get", "-j", "1", "--if-exists", policy, "-i", "-"], input: list, directory: place.url)
            #expect(result.status == statuses[policy], "\(list)\(result.stderr)")
            let (seed, length): (UInt64, Int64) = first == a ? (7, 3 << 20) : (8, 5000)
            #expect(
                try FaultContent(seed: seed).firstMismatch(inFile: place.path(name), length: length) == nil, "\(list)")
            let count = try FileManager.default.subpathsOfDirectory(atPath: place.path("")).count
            #expect(count == (policy == "rename" ? 3 : 2), "\(list)")
        }
        await server.stop()
    }

    // MARK: Servers that cannot resume

    /// One server has no ranges, the other no validator.
    @Test(arguments: ["ranges", "validator"]) func whatStartsOverIsSaidAtOnceAndNotPromised(_ lacks: String)
        async throws
    {
        var version = Version(seed: 7, length: 3 << 20)
        if lacks == "validator" { (version.etag, version.lastModified) = (.absent, nil) }
        let behaviour: Behaviour = lacks == "ranges" ? .always(.ignoresRange) : .correct
        let server = try await FaultServer.start(["/data.bin": Resource(version, rate: 4 << 20, behaviour: behaviour)])
        let reason =
            lacks == "ranges"
            ? "the server does not support range requests for this file and can send only the whole file"
            : "the server sends neither an ETag nor a Last-Modified date to prove that the file is unchanged"
        let place = try TestDirectory()
        let run = try CommandRun(["get", server.url("/data.bin")], directory: place.url)
        await server.log.wait { $0.bodyBytesServed("/data.bin") > 3 * Self.mebibyte / 2 }
        let warning = "data.bin: \(reason). An interrupted download restarts from the beginning"
        #expect(run.stderrSoFar.contains(warning), "\(run.stderrSoFar)")
        run.signal(SIGINT)
        let result = try await run.finish()
        #expect(result.status == 130)
        let restart = "The next run restarts from the beginning because \(reason)"
        #expect(result.stderr.contains(restart), "\(result.stderr)")
        for promise in ["kept", "to resume"] where lacks == "ranges" { #expect(!result.stderr.contains(promise)) }

        let status = try await CommandRun.run(["status", "data.bin"], directory: place.url)
        #expect(status.status == 0)
        let cause = lacks == "ranges" ? "does not support range requests" : "sends neither an ETag nor a"
        let prospect = "no. The next run restarts from the beginning because the server \(cause)"
        #expect(status.text.contains(prospect), "\(status.text)")
        let json = try await CommandRun.run(["status", "--json", "data.bin"], directory: place.url)
        #expect(try json.objects.first?["goesOn"] as? Bool == false)

        let again = try await CommandRun.run(["get", server.url("/data.bin")], directory: place.url)
        #expect(again.status == 0, "\(again.stderr)")
        #expect(try FaultContent(seed: 7).firstMismatch(inFile: place.path("data.bin"), length: 3 << 20) == nil)
        await server.stop()
    }

    @Test func aProbeSaysTheSameOfRangesAndOfGoingOn() async throws {
        let server = try await FaultServer.start(["/data.bin": file()])
        let proven =
            "yes: an interrupted download resumes."
            + " The server sends a strong ETag or date, which shows whether the file changed"
        let unsupported =
            "no: an interrupted download restarts from the beginning,"
            + " because the server does not support range requests"
        let cases: [(Behaviour, String, String)] = [
            (.correct, "yes", proven), (.always(.claimsRanges), "yes", proven),
            (.always(.ignoresRange), "no", unsupported),
        ]
        for (behaviour, ranges, resumable) in cases {
            server.set(behaviour, for: "/data.bin")
            let result = try await CommandRun.run(["probe", server.url("/data.bin")])
            let text = result.text.replacing(/[ ]{2,}/, with: " ")
            #expect(text.contains("range requests \(ranges == "yes" ? "supported" : "not supported")\n"), "\(text)")
            #expect(text.contains("resumable \(resumable)\n"), "\(text)")
            let json = try await CommandRun.run(["probe", "--json", server.url("/data.bin")])
            #expect(try json.objects.first?["ranges"] as? String == ranges)
        }
        await server.stop()
    }
}
