import FaultServer
import Foundation
import Testing

/// Runs the built command against a server, end to end.
struct DownloadTests {
    private static let mebibyte: Int64 = 1 << 20

    private func file(_ length: Int64 = 3 << 20, seed: UInt64 = 7, rate: Int64? = nil) -> Resource {
        Resource(length: length, seed: seed, rate: rate)
    }

    private func isRight(_ path: String, length: Int64 = 3 << 20, seed: UInt64 = 7) throws -> Bool {
        try FaultContent(seed: seed).firstMismatch(inFile: path, length: length) == nil
    }

    @Test func aFileArrivesUnderItsName() async throws {
        let server = try await FaultServer.start(["/data.bin": file()])
        let place = try TestDirectory()
        let result = try await CommandRun.run(["get", server.url("/data.bin")], directory: place.url)
        #expect(result.status == 0, "\(result.stderr)")
        #expect(place.names == ["data.bin"])
        #expect(try isRight(place.path("data.bin")))
        #expect(result.stderr.contains("data.bin  downloaded 3.0 MiB in "))
        #expect(result.stderr.hasSuffix("\n"))
        #expect(!result.stderr.contains("\u{1B}"))
        #expect(result.text == "")

        let again = try await CommandRun.run(["get", server.url("/data.bin")], directory: place.url)
        #expect(again.status == 0)
        #expect(again.stderr.contains("already downloaded ("))
        await server.stop()
    }

    @Test func standardOutputGetsTheBytesAlone() async throws {
        let server = try await FaultServer.start(["/data.bin": file()])
        let place = try TestDirectory()
        let result = try await CommandRun.run(["get", "-o", "-", server.url("/data.bin")], directory: place.url)
        #expect(result.status == 0, "\(result.stderr)")
        #expect(Array(result.stdout) == FaultContent(seed: 7).bytes(in: 0..<3 * Self.mebibyte))
        #expect(place.names == [])
        await server.stop()
    }

    /// An interrupted download to standard output cannot resume, and the message does not promise that.
    @Test func anInterruptedStandardOutputPromisesNothing() async throws {
        let server = try await FaultServer.start(["/data.bin": file(rate: 4 << 20)])
        let run = try CommandRun(["get", "-o", "-", server.url("/data.bin")])
        await server.log.wait { $0.bodyBytesServed("/data.bin") > 3 * Self.mebibyte / 2 }
        run.signal(SIGINT)
        let result = try await run.finish()
        #expect(result.status == 130)
        #expect(result.stderr.contains("The next run restarts from the beginning because"), "\(result.stderr)")
        #expect(result.stderr.contains("standard output"), "\(result.stderr)")
        for promise in ["kept", "to resume"] { #expect(!result.stderr.contains(promise), "\(result.stderr)") }
        await server.stop()
    }

    /// The URL determines the name: the user did not choose the pipe of that name, and no file may replace it.
    @Test(arguments: [("fail", 6), ("overwrite", 6), ("skip", 0), ("rename", 0)] as [(String, Int32)])
    func aPipeStaysAPipe(_ policy: String, _ status: Int32) async throws {
        let server = try await FaultServer.start(["/pipe": file()])
        let place = try TestDirectory()
        #expect(mkfifo(place.path("pipe"), 0o600) == 0)
        let result = try await CommandRun.run(
            ["get", "--if-exists", policy, server.url("/pipe")], directory: place.url)
        #expect(result.status == status, "\(result.stderr)")
        #expect(result.stderr.contains("pipe is a pipe or a device") == (status == 6), "\(result.stderr)")
        #expect(place.names == (policy == "rename" ? ["pipe", "pipe (1)"] : ["pipe"]))
        #expect(isPipe(place.path("pipe")))
        await server.stop()
    }

    /// A link such as `/dev/stdout` leads to an output that many programs write to.
    @Test(arguments: [("fail", 6), ("overwrite", 6), ("skip", 0)] as [(String, Int32)])
    func aLinkToAPipeStaysALink(_ policy: String, _ status: Int32) async throws {
        let server = try await FaultServer.start(["/out": file()])
        let place = try TestDirectory()
        #expect(mkfifo(place.path("pipe"), 0o600) == 0)
        #expect(symlink("pipe", place.path("out")) == 0)
        let result = try await CommandRun.run(
            ["get", "--if-exists", policy, server.url("/out")], directory: place.url)
        #expect(result.status == status, "\(result.stderr)")
        #expect(result.stderr.contains("out is a pipe or a device") == (status == 6), "\(result.stderr)")
        #expect(place.names == ["out", "pipe"] && isPipe(place.path("pipe")))
        #expect(try FileManager.default.destinationOfSymbolicLink(atPath: place.path("out")) == "pipe")
        await server.stop()
    }

    private func isPipe(_ path: String) -> Bool {
        var status = stat()
        return lstat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFIFO
    }

    /// A pipe created while the download was interrupted is kept, even with `--if-exists overwrite`.
    @Test func aPipeThatCameMeanwhileStaysToo() async throws {
        let server = try await FaultServer.start(["/out": file(rate: 4 << 20)])
        let place = try TestDirectory()
        let run = try CommandRun(["get", server.url("/out")], directory: place.url)
        await server.log.wait { $0.bodyBytesServed("/out") > 3 * Self.mebibyte / 2 }
        run.signal(SIGINT)
        _ = try await run.finish()
        #expect(mkfifo(place.path("out"), 0o600) == 0)
        let again = try await CommandRun.run(
            ["get", "--if-exists", "overwrite", server.url("/out")], directory: place.url)
        #expect(again.status == 6)
        #expect(again.stderr.contains("out is a pipe or a device"), "\(again.stderr)")
        #expect(isPipe(place.path("out")))
        #expect(place.names == ["out", "out.tow", "out.tow-journal"], "the received bytes are kept")
        await server.stop()
    }

    /// The server sends another name, so the pipe under the guessed name does not matter.
    @Test func aPipeOfANameThatIsOnlyGuessedIsNoMatter() async throws {
        let named = Resource(
            Version(seed: 7, length: 3 << 20), behaviour: .always(.contentDisposition("attachment; filename=x")))
        let server = try await FaultServer.start(["/data.bin": named])
        let place = try TestDirectory()
        #expect(mkfifo(place.path("data.bin"), 0o600) == 0)
        let result = try await CommandRun.run(["get", server.url("/data.bin")], directory: place.url)
        #expect(result.status == 0, "\(result.stderr)")
        #expect(place.names == ["data.bin", "x"])
        await server.stop()
    }

    @Test func jsonIsALinePerEvent() async throws {
        let server = try await FaultServer.start(["/data.bin": file(), "/none": file()])
        server.set(.always(.status(404)), for: "/none")
        let place = try TestDirectory()
        let result = try await CommandRun.run(
            ["get", "--json", "-d", place.url.path, server.url("/data.bin"), server.url("/none")])
        #expect(result.status == 8, "\(result.stderr)")
        let objects = try result.objects
        let first = objects.filter { $0["download"] as? Int == 1 }
        #expect(first.first?["event"] as? String == "started")
        #expect(first.last?["event"] as? String == "finished")
        #expect(first.last?["path"] as? String == place.path("data.bin"))
        #expect(first.last?["length"] as? Int == 3 << 20)
        let second = objects.filter { $0["download"] as? Int == 2 }
        #expect(second.last?["event"] as? String == "failed")
        #expect(second.last?["httpStatus"] as? Int == 404)
        #expect(objects.last?["event"] as? String == "ended")
        #expect(objects.last?["exitStatus"] as? Int == 8)
        #expect(result.stderr == "")
        await server.stop()
    }

    @Test func aFastDownloadOverManyConnectionsIsNotCalledConnectingBetweenSegments() async throws {
        let server = try await FaultServer.start(["/data.bin": file(200 << 20)])
        let place = try TestDirectory()
        let result = try await CommandRun.run(
            ["get", "--json", "--no-sync", "-x", "32", "-d", place.url.path, server.url("/data.bin")])
        #expect(result.status == 0, "\(result.stderr)")
        let states = try result.objects.compactMap { $0["state"] as? String }
        #expect(!states.drop { $0 == "connecting" }.contains("connecting"), "\(states)")
        await server.stop()
    }

    @Test func aListWithOptionsAndMistakes() async throws {
        let server = try await FaultServer.start(["/f*": file()])
        let place = try TestDirectory()
        let list = """
            # three that are right
            \(server.url("/f1"))
              output=renamed
            \(server.url("/f2"))

            \(server.url("/f3"))
              --header X-Test: yes
            not a url
            \(server.url("/f4"))
              no-such-option=1
            """
        let result = try await CommandRun.run(
            ["get", "-q", "--list-options", "all", "-i", "-", "-d", place.url.path], input: list)
        #expect(result.status == 2)
        #expect(place.names == ["f2", "f3", "renamed"])
        for name in place.names { #expect(try isRight(place.path(name))) }
        let errors = result.stderr.split(separator: "\n")
        #expect(errors.count == 2)
        #expect(errors.contains { $0.contains("standard input, line 8") })
        #expect(errors.contains { $0.contains("standard input, line 10") && $0.contains("no-such-option") })
        #expect(server.log.requests("/f3").allSatisfy { $0.info.fields.contains { $0.0 == "X-Test" && $0.1 == "yes" } })
        #expect(server.log.requests("/f4").isEmpty)
        await server.stop()
    }

    @Test(arguments: [(SIGINT, 130), (SIGTERM, 143), (SIGHUP, 143)] as [(Int32, Int32)])
    func aSignalKeepsEverythingAndSaysSo(_ number: Int32, _ expected: Int32) async throws {
        let server = try await FaultServer.start(["/data.bin": file(rate: 4 << 20)])
        let place = try TestDirectory()
        let run = try CommandRun(["get", "-x", "1", server.url("/data.bin")], directory: place.url)
        await server.log.wait { $0.bodyBytesServed("/data.bin") > 3 * Self.mebibyte / 2 }
        run.signal(number)
        let result = try await run.finish()
        #expect(result.status == expected)
        #expect(result.stderr.contains("kept"), "\(result.stderr)")
        #expect(result.stderr.contains("Run the same command again to resume"))
        #expect(place.names == ["data.bin.tow", "data.bin.tow-journal"])

        let status = try await CommandRun.run(["status", "data.bin.tow"], directory: place.url)
        #expect(status.status == 0, "\(status.stderr)")
        #expect(status.text.contains("3.0 MiB (3145728 bytes)"))
        #expect(status.text.contains("Run the same command again to resume"))
        let held = try await CommandRun.run(["status", "--json", "data.bin"], directory: place.url).objects.first
        #expect((held?["heldBytes"] as? Int ?? 0) > 1 << 20)

        let before = server.log.bodyBytesServed("/data.bin")
        let again = try await CommandRun.run(["get", server.url("/data.bin")], directory: place.url)
        #expect(again.status == 0, "\(again.stderr)")
        #expect(again.stderr.contains(" MiB in total)"))
        #expect(try isRight(place.path("data.bin")))
        #expect(server.log.bodyBytesServed("/data.bin") - before < 3 * Self.mebibyte)
        await server.stop()
    }

    /// timeout(1) signals the process, and then its group.
    @Test func aSignalsEchoIsNoSecondOne() async throws {
        let server = try await FaultServer.start(["/data.bin": file(rate: 4 << 20)])
        let place = try TestDirectory()
        let run = try CommandRun(["get", "-x", "1", server.url("/data.bin")], directory: place.url)
        await server.log.wait { $0.bodyBytesServed("/data.bin") > 3 * Self.mebibyte / 2 }
        // A signal sent after the first was handled counts as another one; pending signals count as one. The sleep
        // blocks this thread: if other tests keep all threads busy, a task sleeps for longer than an echo takes.
        for _ in 0..<20 {
            run.signal(SIGTERM)
            usleep(500)
        }
        let result = try await run.finish()
        #expect(result.status == 143)
        #expect(result.stderr.contains("Run the same command again"), "\(result.stderr)")
        await server.stop()
    }

    /// A file that changed between two runs is fetched over several connections like any other file.
    @Test func anotherFileIsFetchedOverSeveralConnectionsToo() async throws {
        let length: Int64 = 8 << 20
        let server = try await FaultServer.start(["/data.bin": file(length, rate: 2 << 20)])
        let place = try TestDirectory()
        let run = try CommandRun(["get", "-x", "4", server.url("/data.bin")], directory: place.url)
        await server.log.wait { $0.bodyBytesServed("/data.bin") > 3 * Self.mebibyte }
        run.signal(SIGKILL)
        #expect(try await run.finish().status == 137)
        server.replace("/data.bin", with: Version(seed: 8, length: length))
        let before = server.log.requests.count
        let again = try await CommandRun.run(["get", "-x", "4", server.url("/data.bin")], directory: place.url)
        #expect(again.status == 0, "\(again.stderr)")
        #expect(again.stderr.contains("restarting from the beginning"), "\(again.stderr)")
        #expect(try isRight(place.path("data.bin"), length: length, seed: 8))
        // Two requests discover the change. The second one shares the file with others.
        #expect(server.log.requests.count - before >= 3)
        await server.stop()
    }

    @Test(arguments: ["fail", "overwrite"]) func aDirectoryUnderTheNameIsSaidBeforeTheBytes(_ policy: String)
        async throws
    {
        let server = try await FaultServer.start(["/data.bin": file()])
        let place = try TestDirectory()
        #expect(mkdir(place.path("data.bin"), 0o700) == 0)
        let result = try await CommandRun.run(
            ["get", "--if-exists", policy, server.url("/data.bin")], directory: place.url)
        #expect(result.status == 6, "\(result.stderr)")
        #expect(result.stderr.contains("data.bin is a directory"), "\(result.stderr)")
        #expect(place.names == ["data.bin"])
        await server.stop()
    }

    @Test func aFileThatIsThereIsSaidToMatch() async throws {
        let server = try await FaultServer.start(["/data.bin": file(0)])
        let place = try TestDirectory()
        // The SHA-256 of no bytes.
        let sum = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
        for words in [["checksum (sha256)"], ["checksum (sha256)", "already downloaded ("]] {
            let result = try await CommandRun.run(
                ["get", "--checksum", "sha256:\(sum)", server.url("/data.bin")], directory: place.url)
            #expect(result.status == 0)
            for word in words { #expect(result.stderr.contains(word), "\(result.stderr)") }
        }
        await server.stop()
    }

    @Test func killedAndRunAgainItGoesOn() async throws {
        let server = try await FaultServer.start(["/data.bin": file(8 << 20, rate: 8 << 20)])
        let place = try TestDirectory()
        let run = try CommandRun(["get", "-x", "1", server.url("/data.bin")], directory: place.url)
        await server.log.wait { $0.bodyBytesServed("/data.bin") > 5 * Self.mebibyte }
        run.signal(SIGKILL)
        #expect(try await run.finish().status == 137)
        let again = try await CommandRun.run(["get", "-x", "1", server.url("/data.bin")], directory: place.url)
        #expect(again.status == 0, "\(again.stderr)")
        #expect(try isRight(place.path("data.bin"), length: 8 << 20))
        let second = server.log.requests("/data.bin").dropFirst().reduce(Int64(0)) { $0 + $1.bodyBytes }
        #expect(second < 5 * Self.mebibyte, "\(second) bytes were fetched again")
        await server.stop()
    }

    @Test func passwordsAreOutOfSight() async throws {
        let server = try await FaultServer.start(["/data.bin": file(rate: 1 << 20)])
        let place = try TestDirectory()
        let url = server.url("/data.bin").replacingOccurrences(of: "//", with: "//name:canary1@")
        let run = try CommandRun(
            ["get", "--user", "name:canary2", "-H", "Authorization: canary3", url], directory: place.url)
        await server.log.wait { $0.bodyBytesServed("/data.bin") > Self.mebibyte / 2 }
        let seen = try String(contentsOfFile: "/proc/\(run.process.processIdentifier)/cmdline", encoding: .utf8)
        #expect(seen.contains("--user"))
        #expect(!seen.contains("canary"), "\(seen.replacing("\0", with: " "))")
        run.signal(SIGTERM)
        let result = try await run.finish()
        #expect(!result.stderr.contains("canary"))
        let journal = try Data(contentsOf: place.file("data.bin.tow-journal"))
        #expect(journal.range(of: Data("canary".utf8)) == nil)
        await server.stop()
    }

    @Test(arguments: ["2>&-", ">&-", "<&-", ">&- 2>&- <&-", "2>/dev/full"])
    func closedDescriptorsHarmNothing(_ redirection: String) async throws {
        let server = try await FaultServer.start(["/data.bin": file()])
        let place = try TestDirectory()
        let shell = Process()
        shell.executableURL = URL(fileURLWithPath: "/bin/sh")
        let tow = CommandRun.products.appendingPathComponent("tow").path
        shell.arguments = ["-c", "exec \"$0\" get \"$1\" \(redirection)", tow, server.url("/data.bin")]
        shell.currentDirectoryURL = place.url
        await withCheckedContinuation { continuation in
            shell.terminationHandler = { _ in continuation.resume() }
            do { try shell.run() } catch { continuation.resume() }
        }
        #expect(shell.terminationStatus == 0)
        #expect(try isRight(place.path("data.bin")))
        await server.stop()
    }

    /// A small file is held in memory for at most twenty milliseconds. Each file is requested once, at any speed, and
    /// after any pause between its head and its body.
    @Test(arguments: [false, true]) func smallFilesOfEveryPaceComeOnce(_ pauses: Bool) async throws {
        let paces = (5...70).map { Int64($0) * 10_000 }
        let resources = paces.map { pace in
            // The pauses range from 18 to 22 ms.
            let pause = Duration.microseconds(18_000 + (pace - 50_000) / 10_000 * 60)
            let paused = Resource(length: 6000, behaviour: .always(.pause(after: 0, pause)))
            return ("/\(pace).bin", pauses ? paused : Resource(length: 6000, rate: pace))
        }
        let server = try await FaultServer.start(Dictionary(uniqueKeysWithValues: resources))
        let place = try TestDirectory()
        let list = paces.map { server.url("/\($0).bin") + "\n" }.joined()
        let result = try await CommandRun.run(
            ["get", "-q", "-j", "8", "-i", "-", "-d", place.url.path], input: list)
        #expect(result.status == 0, "\(result.stderr)")
        #expect(server.log.requests.count == paces.count)
        for pace in paces {
            let size = try Data(contentsOf: place.url.appendingPathComponent("\(pace).bin")).count
            #expect(size == 6000, "\(pace)")
        }
        await server.stop()
    }

    /// A server that sends no checksums of small files is asked for them some tens of times; one that does, each time.
    @Test(arguments: [false, true], [1, 4])
    func checksumsOfSmallFilesAreAskedForWhereTheyAreGiven(_ gives: Bool, _ concurrency: Int) async throws {
        let place = try TestDirectory()
        try Data(FaultContent(seed: 7).bytes(in: 0..<6000)).write(to: place.file("bytes"))
        let digits = Array(try await place.sha256(of: "bytes"))
        let bytes = stride(from: 0, to: 64, by: 2).compactMap { UInt8(String(digits[$0...$0 + 1]), radix: 16) }
        let fault = Fault.reprDigest("sha-256=:\(Data(bytes).base64EncodedString()):")
        let behaviour = Behaviour { gives ? fault.make($0) : $0.correct }
        let names = (0..<200).map { "/\($0).bin" }
        let server = try await FaultServer.start(
            Dictionary(uniqueKeysWithValues: names.map { ($0, Resource(length: 6000, seed: 7, behaviour: behaviour)) }))
        let result = try await CommandRun.run(
            ["get", "-q", "-j", "\(concurrency)", "-i", "-", "-d", place.url.path],
            input: names.map { server.url($0) + "\n" }.joined())
        #expect(result.status == 0, "\(result.stderr)")
        let wishes = server.log.requests.map { $0.info.fields.contains { $0.0 == "Want-Repr-Digest" } }
        let count = wishes.count { $0 }
        #expect(wishes.count == 200)
        // Checksums are wanted with the first requests, those under way then, and one in 64.
        #expect(gives ? count == 200 : (32..<100).contains(count), "\(count)")
        await server.stop()
    }

    /// The descriptors limit the number of concurrent downloads, whatever `-j` says.
    @Test func fewDescriptorsMakeFewDownloads() async throws {
        let names = (0..<60).map { "/\($0).bin" }
        let server = try await FaultServer.start(
            Dictionary(uniqueKeysWithValues: names.map { ($0, Resource(length: 1_200_000, rate: 3_000_000)) }))
        let place = try TestDirectory()
        let list = place.path("list")
        try names.map { server.url($0) + "\n" }.joined().write(toFile: list, atomically: true, encoding: .utf8)
        let shell = Process()
        shell.executableURL = URL(fileURLWithPath: "/bin/bash")
        let tow = CommandRun.products.appendingPathComponent("tow").path
        shell.arguments = [
            "-c", "ulimit -n 112; exec \"$0\" get -x 1 -j 60 -d \"$1\" -i \"$2\" 2>\"$3\"", tow, place.url.path, list,
            place.path("said"),
        ]
        await withCheckedContinuation { continuation in
            shell.terminationHandler = { _ in continuation.resume() }
            do { try shell.run() } catch { continuation.resume() }
        }
        let said = try String(contentsOfFile: place.path("said"), encoding: .utf8)
        #expect(shell.terminationStatus == 0, "\(said)")
        #expect(said.contains("tow: the limit of 112 open files allows only 16 downloads at once"), "\(said)")
        let made = try FileManager.default.contentsOfDirectory(atPath: place.url.path).filter { $0.hasSuffix(".bin") }
        #expect(made.count == 60)
        await server.stop()
    }

    @Test func aProbeTellsWhatThereIsAndFetchesNothing() async throws {
        let server = try await FaultServer.start(["/data.bin": file(), "/there": file()])
        server.set(.always(.redirect(to: "/data.bin")), for: "/there")
        let result = try await CommandRun.run(["probe", server.url("/there")])
        #expect(result.status == 0, "\(result.stderr)")
        #expect(result.text.contains("3.0 MiB (3145728 bytes)"))
        #expect(result.text.contains("strong ETag"))
        #expect(result.text.hasPrefix(server.url("/data.bin") + "\n"))
        let json = try await CommandRun.run(["probe", "--json", server.url("/data.bin")])
        #expect(try json.objects.first?["completeLength"] as? Int == 3 << 20)
        let missing = try await CommandRun.run(["probe", server.url("/missing")])
        #expect(missing.status == 8)
        await server.stop()
    }
}
