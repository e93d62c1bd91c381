import Testing
import TowlineCore
import TowlineEngine

@testable import tow

/// Tests the conversion of options as text to settings of the engine.
struct DownloadSettingsTests {
    private func options(
        _ given: KeyValuePairs<Setting, String>, url: String = "http://a.test/f"
    ) throws -> DownloadOptions {
        var settings = DownloadSettings()
        for (setting, value) in given { try settings.apply(setting, value) }
        return try settings.options(for: HTTPURL(parsing: url))
    }

    @Test func defaultsAreTheEngines() throws {
        let ours = try options([:])
        var engines = try DownloadOptions(
            url: HTTPURL(parsing: "http://a.test/f"), target: .file(directory: ".", name: nil))
        engines.maximumTries = 20
        // A command does not wait for hours, unlike a service.
        engines.maximumWait = .seconds(3600)
        #expect("\(ours)" == "\(engines)")
    }

    @Test(arguments: [
        ("f", nil, ".", "f"), ("d/f", nil, "d", "f"), ("/f", nil, "/", "f"), ("/d/f", nil, "/d", "f"),
        ("f", "dir", "dir", "f"), ("d/f", "dir", "dir/d", "f"), ("/d/f", "dir", "/d", "f"),
        ("../f", nil, "..", "f"), ("-f", nil, ".", "-f"),
    ])
    func whereTheFileGoes(_ output: String, _ directory: String?, _ inDirectory: String, _ name: String) throws {
        var settings = DownloadSettings()
        if let directory { try settings.apply(.directory, directory) }
        try settings.apply(.output, output)
        #expect(
            try settings.options(for: HTTPURL(parsing: "http://a.test/")).target
                == .file(directory: inDirectory, name: name))
    }

    @Test(arguments: ["-", "/dev/stdout"]) func aHyphenIsStandardOutput(_ output: String) throws {
        #expect(try options([.output: output]).target == .standardOutput)
    }

    @Test(arguments: ["", "d/", "/", ".", "..", "a/.."])
    func whatNamesNoFileIsRefused(_ output: String) {
        #expect(throws: TowlineError.self) { try options([.output: output]) }
    }

    @Test func mirrorsAreOtherURLsWithoutCredentials() throws {
        var settings = DownloadSettings()
        for url in ["http://b.test/f", "http://c.test/f", "http://b.test/f", "http://a.test/"] {
            try settings.apply(.mirror, url)
        }
        let mirrors = try settings.options(for: HTTPURL(parsing: "http://a.test/")).mirrors
        #expect(mirrors.map(\.requestText) == ["http://b.test/f", "http://c.test/f"])
        #expect(throws: TowlineError.self) { try settings.apply(.mirror, "http://me:secret@d.test/f") }
        for number in 0..<13 { try settings.apply(.mirror, "http://d.test/\(number)") }
        #expect(throws: TowlineError.self) { try settings.apply(.mirror, "http://d.test/one-too-many") }
    }

    @Test func everyFlagDoesWhatItSays() throws {
        #expect(try options([.noSync: ""]).durable == false)
        #expect(try options([.noPreallocate: ""]).reservesSpace == false)
        #expect(try options([.unsafeResume: ""]).allowsUnsafeResume)
        #expect(try options([.ignoreServerChecksums: ""]).ignoresServerChecksums)
        #expect(try options([.acceptHTML: ""]).acceptsWebPages)
        #expect(try options([.sequential: ""]).isSequential)
        #expect(try options([.netrc: ""]).connection.netrc == .userFile)
        #expect(try options([.insecure: ""]).connection.allowsInsecure)
        #expect(try options([.http1: ""]).connection.httpProtocol == .http1)
        #expect(try options([.allowDowngrade: ""]).allowsDowngrade)
    }

    @Test func everyValueArrives() throws {
        let made = try options([
            .ifExists: "rename", .ifChanged: "fail", .connections: "7", .limitRate: "1.5K", .maxTries: "0",
            .retryWait: "0.25", .stallTimeout: "90s", .connectTimeout: "5", .maxRedirects: "3", .header: "A: b",
            .maxSize: "2G", .proxy: "socks5h://p:1080", .retryOn: "404, 403",
        ])
        #expect(made.retryStatuses == [403, 404])
        #expect(made.existing == .rename)
        #expect(made.changed == .fail)
        #expect(made.connections == 7)
        #expect(made.rateLimit == 1536)
        #expect(made.maximumTries == 0)
        #expect(made.retryWait == .milliseconds(250))
        #expect(made.stallTimeout == .seconds(90))
        #expect(made.connection.connectTimeout == .seconds(5))
        #expect(made.maximumRedirects == 3)
        #expect(made.maximumSize == 2 << 30)
        #expect(made.userFields.value(named: "a") == "b")
        #expect(made.connection.proxy == "socks5h://p:1080")
    }

    @Test func everySettingIsApplied() throws {
        // A setting that `apply` forgets would change nothing.
        let values: [Setting: String] = [
            .output: "f", .directory: "d", .ifExists: "skip", .ifChanged: "fail", .connections: "1",
            .checksum: "crc32c:00000000", .limitRate: "1", .header: "A: b", .user: "a:b", .userFile: "/proc/self/comm",
            .bearerFile: "/proc/self/comm", .netrcFile: "/dev/null", .cookies: "/dev/null", .proxy: "http://p",
            .cacert: "/dev/null", .connectTimeout: "1", .stallTimeout: "1", .maxTries: "1", .retryWait: "2",
            .maxRedirects: "1", .maxSize: "1", .retryOn: "404", .mirror: "http://b.test/",
            .resolve: "a.test:1:127.0.0.1", .headTimeout: "1", .maxWait: "1", .cert: "/dev/null", .key: "/dev/null",
            .keyPasswordFile: "/proc/self/comm",
        ]
        for setting in Setting.allCases where setting != .userFile {
            var settings = DownloadSettings()
            try settings.apply(setting, values[setting] ?? "")
            #expect("\(settings)" != "\(DownloadSettings())", "\(setting) changes nothing")
        }
    }

    @Test func optionsOfTheConnectionArrive() throws {
        let made = try options([
            .resolve: "a.test:443:192.0.2.1,[2001:db8::1]", .headTimeout: "400", .maxWait: "86401", .noProxy: "",
            .ipv6: "",
        ])
        let fixed = ConnectionOptions.FixedAddresses(
            host: "a.test", port: 443, addresses: ["192.0.2.1", "2001:db8::1"])
        #expect(made.connection.fixedAddresses == [fixed])
        #expect(made.connection.headTimeout == .seconds(400))
        #expect(made.maximumWait == .seconds(86_401))
        #expect(made.connection.proxy?.isEmpty == true)
        #expect(made.connection.addressFamily == .ipv6)
    }

    @Test(arguments: [
        "", "a.test", "a.test:80", "a.test:80:", "a.test:80:b.test", "a.test:0:127.0.0.1", "a.test:x:127.0.0.1",
        ":80:127.0.0.1", "a.test:80:127.0.0.1,", "[::1:80:127.0.0.1", "a.test:80:[::1", "a/b:80:127.0.0.1",
    ]) func addressesThatAreNone(_ text: String) {
        #expect(throws: TowlineError.self) { try OptionValue.fixedAddresses(text) }
    }

    @Test(arguments: [(Setting.ipv4, "http://[::1]/"), (.ipv6, "http://127.0.0.1/")])
    func anAddressOfTheOtherFamilyIsRefused(_ setting: Setting, _ url: String) {
        #expect(throws: TowlineError.self) { try options([setting: ""], url: url) }
    }

    @Test func aKeyNeedsItsCertificate() {
        #expect(throws: TowlineError.self) { try options([.key: "/dev/null"]) }
    }

    @Test func aClientCertificateIsASecret() throws {
        var settings = DownloadSettings()
        try settings.apply(.cert, "/dev/null")
        #expect(settings.hasSecrets && settings.withoutSecrets.connection.clientCertificate == nil)
    }

    @Test func theURLsUserInfoIsUsedUnlessAnotherIsGiven() throws {
        #expect(try options([:], url: "http://n:p%40@a.test/").connection.user == "n:p@")
        #expect(try options([:], url: "http://n@a.test/").connection.user == "n:")
        #expect(try options([.user: "x:y"], url: "http://n:p@a.test/").connection.user == "x:y")
    }

    @Test(arguments: ["0", "-1", "1e3", "nan", "inf", "", "s", "86401", "0x10", "1.2.3"])
    func secondsThatAreNone(_ text: String) {
        #expect(throws: TowlineError.self) { try OptionValue.seconds(text) }
    }

    @Test(arguments: ["", "404,", "200", "204", "302", "407", "416", "600", "0404", "+404", "404;403", "4x4", "all"])
    func statusesThatAreNone(_ text: String) {
        #expect(throws: TowlineError.self) { try OptionValue.statuses(text) }
    }

    @Test func manyPasswordsInArgumentsAreBlanked() {
        let arguments = [
            "tow", "get", "--user", "n:p", "--user=n:p", "-H", "Authorization: x", "-H", "Accept: y",
            "http://n:p@a.test/b@c", "http://a.test/?x@y", "--header=cookie: z", "--proxy", "http://u:v@p:1",
            "-H", "X-Api-Key: k", "--mirror=https://b.test/?sig=s", "HTTPS://a.test/?T", "-qH", "X-Key: q",
            "--proxy", "u:v/w@p:1", "--proxy=http://u:v@w@p:1", "--proxy", "p:1",
        ].map { Array($0.utf8) }
        let all = arguments.joined(separator: [0])
        let hidden = ArgumentSecrets.secretRanges(in: arguments).map { String(decoding: Array(all)[$0], as: UTF8.self) }
        #expect(hidden == ["n:p", "n:p", " x", "n:p", "x@y", " z", "u:v", " k", "sig=s", "T", " q", "u:v/w", "u:v@w"])
        for words in [
            ["--user", "n:p"], ["--user=n:p"], ["-H", "Authorization: x"], ["http://n:p@a"], ["http://a/?x"],
            ["--header=cookie: z"], ["--proxy=http://u:v@p"],
        ] {
            #expect(!ArgumentSecrets.secretRanges(in: words.map { Array($0.utf8) }).isEmpty)
            #expect(words.contains(where: ArgumentSecrets.mayBeOne), "\(words) are looked at")
        }
        for (words, secret) in [
            (["-b", "sid=1"], "sid=1"), (["--cookie=sid=2"], "sid=2"), (["-sSLb", "sid=3"], "sid=3"),
            (["-un:p"], "n:p"),
            (["-sHCookie: 4"], " 4"),
        ] {
            let bytes = words.map { Array($0.utf8) }
            let all = bytes.joined(separator: [0])
            let hidden = ArgumentSecrets.secretRanges(in: bytes).map { String(decoding: Array(all)[$0], as: UTF8.self) }
            #expect(hidden == [secret])
            #expect(words.contains(where: ArgumentSecrets.mayBeOne), "\(words) are looked at")
        }
        #expect(!["tow", "get", "-q", "http://a.test/b.bin"].contains(where: ArgumentSecrets.mayBeOne))
    }
}
