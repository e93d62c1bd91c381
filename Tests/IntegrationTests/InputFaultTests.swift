import FaultServer
import Foundation
import Testing
import TowlineCore
import TowlineEngine
import TransferSimulation

/// Catalogue G and the command's part of H: hostile URLs, headers and names (rows 115–117, 120, 121, 125, 127, 128).
@Suite(.serialized, .timeLimit(.minutes(4)))
struct InputFaultTests {
    /// Two URLs with the same name that differ only in a possible secret are two files: the second is requested, and
    /// gets a name of its own.
    @Test func aKeyThatSaysWhichFileIsAsked() async throws {
        var other = Version(seed: 9, length: 3_000_000)
        other.lastModified = 1_600_000_000
        let byKey = Behaviour { [other] in $0.request.query == "key=b" ? $0.correct(of: other) : $0.correct }
        try await Site.with(try await Site(Resource(length: 3_000_000, behaviour: byKey))) { site in
            let first = try #require(site.server.version(Site.path))
            func get(_ key: String) async throws -> Outcome {
                try await site.download("\(Site.path)?key=\(key)") {
                    $0.target = .file(directory: site.scratch.path, name: nil)
                }
            }
            #expect(try await get("a").succeeded)
            let asked = site.requests.count
            #expect(try await get("b").succeeded)
            #expect(site.requests.count > asked)
            #expect(try site.published([first]) != nil)
            #expect(try site.published([other], name: "file (1).bin") != nil)
            // Another run finds the first file by its length and its date.
            let again = try await get("a")
            #expect(again.succeeded && again.received < 1_000_000, "\(again.message)")
            #expect(site.scratch.names.filter { $0.hasSuffix(".bin") }.count == 2)
        }
    }

    /// Row 115: URLs that must not be sent as they are.
    @Test(arguments: [
        "http://127.0.0.1:0/x", "http://127.0.0.1:99999/x", "http://127.0.0.1\r\nX-Evil: 1/x",
        "http://127.0.0.1/x\r\nX-Evil: 1", "http://exa mple/x", "ftp://127.0.0.1/x", "file:///etc/passwd", "http:///x",
        "javascript:alert(1)", "http://[::1/x", "", "http://a:b:c/x", "http://ho\u{0}st/x",
    ])
    func row115RefusedURLs(_ url: String) async throws {
        let scratch = try Scratch()
        // A NUL cannot be part of an argument, so the URL is in a list.
        let list = try scratch.write("list", url + "\n")
        let arguments = url.contains("\u{0}") ? ["-i", list] : [url]
        let result = try await ChildRun.run(
            [ChildRun.tow, "get", "--max-tries", "1", "--connect-timeout", "2"] + arguments, directory: scratch.path)
        #expect(result.status != 0)
        #expect(result.status == 2 || url.contains("\u{0}") || url.contains("\r") || url.isEmpty, "\(result.stderr)")
        #expect(scratch.names == ["list"], "\(scratch.names)")
    }

    /// Row 115: targets that are escaped or sent unchanged, and never break the request.
    @Test(arguments: ["/a b.bin", "/a%2fb.bin", "/%0d%0aX-Evil:%201", "/ä.bin", "/a\"<>`{}|^.bin", "/a?q=ä b"])
    func row115EncodedTargets(_ target: String) async throws {
        try await Site.with(try await Site(more: ["/*": Resource(length: 50_000)])) { site in
            let outcome = try await site.download(target)
            #expect(outcome.succeeded, "\(outcome.message)")
            for request in site.server.log.requests {
                #expect(request.info.field("X-Evil") == nil)
                #expect(request.info.target.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F }, "\(request.info.target)")
            }
        }
    }

    /// Row 115: a URL of a megabyte is too long, or works; it has no other effect.
    @Test func row115Megabyte() async throws {
        let long = "/" + String(repeating: "a", count: 1 << 20)
        try await Site.with(try await Site(more: ["/a*": Resource(length: 1000)])) { site in
            let list = try site.scratch.write("list", site.server.url(long) + "\n")
            let result = try await ChildRun.run([ChildRun.tow, "get", "-i", list], directory: site.scratch.path)
            if result.status != 0 { #expect(site.scratch.names == ["list"], "\(site.scratch.names)") }
            #expect(result.stderr.utf8.count < 1 << 20, "the shown URL is cut")
        }
    }

    /// Row 116: fields that would change the range are left out.
    @Test(arguments: [("Range", "bytes=0-5"), ("If-Range", "\"a\""), ("if-none-match", "*")])
    func row116LeftOut(_ name: String, _ value: String) async throws {
        try await Site.with(try await Site()) { site in
            try site.law(try await site.tow(["-H", "\(name): \(value)"]), status: 0)
            #expect(site.requests.allSatisfy { $0.info.field(name) != value })
        }
    }

    /// Row 116: header options with CR or LF, without a name, or that change the range.
    @Test(arguments: [
        "X: a\r\nEvil: 1", "X: a\nEvil: 1", "X: a\rb", ": a", "X", "X Y: a", "Content-Length: 5",
        "Transfer-Encoding: chunked",
    ])
    func row116Headers(_ header: String) async throws {
        try await Site.with(try await Site()) { site in
            let result = try await site.tow(["-H", header])
            #expect(result.status == 2, "\(result.status) \(result.stderr)")
            #expect(site.server.log.requests.isEmpty)
            #expect(site.scratch.names.isEmpty)
        }
    }

    /// Row 117: hostile file names from a server, which must not have any effect outside the directory.
    static let names: [String] = [
        "attachment; filename=\"../../.ssh/authorized_keys\"", "attachment; filename=\"..\\\\x\"",
        "attachment; filename=\"/etc/passwd\"", "attachment; filename=\"C:\\\\x\"", "attachment; filename=\".bashrc\"",
        "attachment; filename=\"-rf\"", "attachment; filename=\"CON\"", "attachment; filename=\"\"", "attachment;",
        "attachment; filename=\"\(String(repeating: "n", count: 5000))\"",
        "attachment; filename*=UTF-8''%E2%80%AEgpj.exe", "attachment; filename=\"a\u{1B}[31mb\"",
        "attachment; filename*=UTF-8''%252e%252e", "attachment; filename*=UTF-8''..%2f..%2fx",
        "attachment; filename=\"..\"", "attachment; filename=\".\"", "attachment; filename=\"a/\"",
        "attachment; filename*=UTF-8''%00x", "attachment; filename*=UTF-8''a%0Ab", "attachment; filename=\"x.tow\"",
        "attachment; filename=\"x.tow-journal\"", "attachment; filename=\"~root\"", "attachment; filename=\"nul.txt\"",
        "attachment; filename=\"a\" ; filename=\"../b\"", "attachment; filename*=nonsense''%ff%fe",
    ]

    @Test(arguments: names) func row117ContentDisposition(_ value: String) async throws {
        let resource = Resource(length: 70_000, behaviour: .always(.contentDisposition(value)))
        try await checkName(resource)
    }

    @Test func row117TwoContentDispositions() async throws {
        let fault = Fault.contentDispositions("attachment; filename=\"a\"", "attachment; filename=\"../b\"")
        try await checkName(Resource(length: 70_000, behaviour: .always(fault)))
    }

    private func checkName(_ resource: Resource) async throws {
        try await Site.with(try await Site(resource)) { site in
            // The directory is nested, so that an escape upwards is noticed.
            let folder = site.scratch.file("inner")
            try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: false)
            let result = try await site.tow(["-d", folder], named: false)
            #expect(result.status == 0, "\(result.stderr)")
            #expect(site.scratch.names == ["inner"])
            let made = try FileManager.default.contentsOfDirectory(atPath: folder)
            #expect(made.count == 1, "\(made)")
            let name = made.first ?? ""
            #expect(!name.hasPrefix(".") && !name.hasPrefix("-") && !name.hasSuffix(".tow-journal"), "\(name)")
            #expect(!name.contains("\\") && !name.contains("..\u{2F}"), "\(name)")
            #expect(!name.unicodeScalars.contains { $0.value < 0x20 || $0.value == 0x202E }, "\(name)")
            #expect(!["CON", "nul.txt"].contains(name), "\(name)")
            #expect(try site.published([resource.version], name: "inner/" + name) != nil)
            #expect(!result.stderr.contains("\u{1B}") && !result.stderr.contains("\u{202E}"))
        }
    }

    /// Row 120: two URLs with the same name make two files.
    @Test(arguments: [1, 2], [10_000, 100_000])
    func row120OneNameTwoFiles(concurrency: Int, length: Int64) async throws {
        let other = Resource(length: length + 20_000, seed: 2)
        let resources = ["/one/same.bin": Resource(length: length), "/two/same.bin": other]
        try await Site.with(try await Site(more: resources)) { site in
            let urls = ["/one/same.bin", "/two/same.bin"].map(site.server.url)
            let result = try await ChildRun.run(
                [ChildRun.tow, "get", "-j", "\(concurrency)"] + urls, directory: site.scratch.path)
            #expect(result.status == 0, "\(result.stderr)")
            #expect(site.scratch.names.count == 2, "\(site.scratch.names)")
            for version in [Version(length: length), Version(seed: 2, length: length + 20_000)] {
                let found = try site.scratch.names.contains { try site.published([version], name: $0) != nil }
                #expect(found)
            }
        }
    }

    /// Row 120: the other file is published between this download's survey and its first answer.
    @Test(arguments: ["rename", "fail", "overwrite", "skip"], [10_000, 100_000])
    func row120TheOtherIsDoneMeanwhile(_ policy: String, _ length: Int64) async throws {
        let gates = [Gate(), Gate()]
        let resources = (0..<2).map { number in
            Resource(
                length: length + Int64(number) * 20_000, seed: UInt64(number + 1),
                behaviour: .always(Fault("late") { Reply([.wait(gates[number])] + $0.correct.steps) }))
        }
        try await Site.with(
            try await Site(more: ["/one/same.bin": resources[0], "/two/same.bin": resources[1]])
        ) { site in
            let urls = ["/one/same.bin", "/two/same.bin"].map(site.server.url)
            let run = try ChildRun(
                [ChildRun.tow, "get", "-j", "2", "--if-exists", policy] + urls, directory: site.scratch.path)
            await site.server.log.wait { log in
                ["/one", "/two"].allSatisfy { log.requests($0 + "/same.bin").count == 1 }
            }
            gates[0].open()
            while !site.scratch.isThere("same.bin") { try await Task.sleep(for: .milliseconds(5)) }
            gates[1].open()
            let result = try await run.finish()
            #expect(result.status == 0, "\(result.stderr)")
            #expect(site.scratch.names.count == 2, "\(site.scratch.names)")
            for number in 0..<2 {
                let version = Version(seed: UInt64(number + 1), length: length + Int64(number) * 20_000)
                #expect(try site.scratch.names.contains { try site.published([version], name: $0) != nil })
            }
        }
    }

    // MARK: Security

    /// Row 121: links under the names of created files are not followed.
    @Test(arguments: ["file.bin", "file.bin.tow", "file.bin.tow-journal"]) func row121Links(_ name: String) async throws
    {
        for dangles in [false, true] {
            try await Site.with(try await Site()) { site in
                let victim = site.scratch.file("victim")
                if !dangles { try site.scratch.write("victim", "precious") }
                #expect(symlink(victim, site.scratch.file(name)) == 0)
                let outcome = try await site.download()
                #expect(site.scratch.read("victim") == (dangles ? "" : "precious"))
                #expect(site.scratch.isThere("victim") != dangles)
                if outcome.succeeded { #expect(try site.published([Version(length: 3_000_000)]) != nil) }
            }
        }
    }

    /// Row 125: passwords appear in no file, on no screen and in no list of processes.
    @Test func row125Canary() async throws {
        let canary = "cAnArY9f3b"
        // The file is long enough that stalled responses cannot complete it before the signal.
        try await Site.with(try await Site(length: 100_000_000, .always(.stall(after: 2_000_000)))) { site in
            let secret = try Scratch()
            let password = try secret.write("password", "me:\(canary)1\n")
            let target = "/file.bin?X-Amz-Signature=\(canary)2&token=\(canary)3"
            let url = site.server.url(target).replacingOccurrences(of: "http://", with: "http://you:\(canary)4@")
            let arguments = Array(
                site.command(
                    ["--user-file", password, "-H", "Authorization: Bearer \(canary)5", "-H", "Cookie: id=\(canary)6"]
                ).dropLast())
            let run = try ChildRun(arguments + [url], directory: site.scratch.path)
            await site.server.log.wait { $0.bodyBytesServed(Site.path) >= 2_000_000 }
            #expect(
                site.requests.contains { request in
                    request.info.fields.contains { $0.1.contains(canary) }
                }, "the secrets are used")
            let process = try String(contentsOfFile: "/proc/\(run.identifier)/cmdline", encoding: .utf8)
            #expect(!process.contains(canary), "\(process)")
            for _ in 0..<2000 where !site.hasJournal { try await Task.sleep(for: .milliseconds(10)) }
            #expect(site.hasJournal)
            try search(site, for: canary)
            run.signal(SIGTERM)
            let result = try await run.finish()
            #expect(!result.stderr.contains(canary), "\(result.stderr)")
            try search(site, for: canary)
            site.server.set(.correct, for: Site.path)
            let last = try await ChildRun.run(arguments + [url], directory: site.scratch.path)
            #expect(last.status == 0, "\(last.stderr)")
            #expect(!last.stderr.contains(canary), "\(last.stderr)")
            try search(site, for: canary)
            let attributes = try await ChildRun.run(
                ["/usr/bin/python3", "-c", Self.attributes, site.scratch.file(Site.name)])
            #expect(attributes.status == 0)
            #expect(!String(decoding: attributes.stdout, as: UTF8.self).contains(canary))
        }
    }

    private static let attributes =
        "import os, sys; p = sys.argv[1]; print([os.getxattr(p, n) for n in os.listxattr(p)])"

    private func search(_ site: Site, for canary: String) throws {
        for name in site.scratch.names where name != Site.name && !name.hasSuffix(".tow") {
            let data = FileManager.default.contents(atPath: site.scratch.file(name)) ?? Data()
            #expect(data.range(of: Data(canary.utf8)) == nil, "\(name)")
        }
        #expect(!site.scratch.names.contains { $0.contains(canary) })
    }

    /// Row 127: under the most permissive umask only the owner can read the journal; the umask limits the file's mode.
    @Test func row127Modes() async throws {
        try await Site.with(try await Site(.first(1, .stall(after: 2_000_000)))) { site in
            let open = ["/bin/bash", "-c", "umask 000; exec \"$@\"", "bash"]
            // The test uses one connection: on a slow machine a second one would complete the file before the checks.
            let run = try ChildRun(
                site.command(["-x", "1", "--stall-timeout", "60"], prefix: open), directory: site.scratch.path)
            await site.server.log.wait { $0.bodyBytesServed(Site.path) >= 2_000_000 }
            // Bytes in the server's kernel buffers are still on their way to the program.
            for _ in 0..<2000 where !site.hasJournal { try await Task.sleep(for: .milliseconds(10)) }
            #expect(try mode(site.scratch.file("file.bin.tow-journal")) == 0o600)
            run.signal(SIGTERM)
            _ = try await run.finish()
            let strict = ["/bin/bash", "-c", "umask 027; exec \"$@\"", "bash"]
            let part = try mode(site.scratch.file("file.bin.tow"))
            #expect(part & 0o111 == 0)
            try FileManager.default.removeItem(atPath: site.scratch.file("file.bin.tow"))
            try site.law(try await site.tow(prefix: strict), status: 0)
            #expect(try mode(site.scratch.file(Site.name)) == 0o640)
        }
    }

    private func mode(_ path: String) throws -> Int {
        let attributes = try FileManager.default.attributesOfItem(atPath: path)
        return (attributes[.posixPermissions] as? NSNumber)?.intValue ?? -1
    }

    /// Row 128: no control byte of a server reaches the terminal, from a name, a field, or the text of an error.
    @Test(arguments: [
        Fault.contentDisposition("attachment; filename=\"a\u{1B}]0;owned\u{7}b\""),
        .redirect(to: "/\u{1B}[2J\u{9B}31m"), .fields([("Content-Encoding", "\u{1B}[31mgzip")]),
        .status(404, fields: [("Server", "\u{1B}[31m")]), .garbageStatusLine,
        .redirect(to: "http://127.0.0.1:1/%1b%5b2J"),
    ])
    func row128ControlBytes(_ fault: Fault) async throws {
        try await Site.with(try await Site(length: 80_000, .always(fault))) { site in
            for style in ["plain", "bar"] {
                let result = try await ChildRun.run(
                    [
                        ChildRun.tow, "get", "--progress", style, "--max-tries", "1", "-d", site.scratch.path,
                        site.server.url(Site.path),
                    ], directory: site.scratch.path, environment: ["TERM": "dumb"])
                let text = Array(result.stderr.unicodeScalars)
                // The progress bar's own sequences begin with ESC; the server's would continue with these bytes.
                let evil = ["\u{1B}]0;", "\u{1B}[2J", "\u{1B}[31mgzip", "\u{9B}"]
                #expect(!evil.contains { result.stderr.contains($0) }, "\(text.count)")
                if style == "plain" {
                    #expect(!text.contains { $0.value == 0x1B || $0.value == 0x7F }, "\(result.stderr)")
                    #expect(!text.contains { $0.value < 0x20 && $0.value != 10 && $0.value != 13 })
                }
            }
        }
    }
}
