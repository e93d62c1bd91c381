import Foundation
import Fuzzing
import Testing
import TowlineCore
import TowlineEngine

@testable import tow

/// Mutated lists of URLs (`tow get -i`), as text and as downloads.
///
/// Fails if a list chooses a path outside the directory of `-d` or an option that is not safe, if a message can control
/// the terminal, and if the result depends on how the bytes are split into reads. To see it fail, remove a check from
/// `ListPath`, or let `Setting.isSafeInList` return true for another option.
@Suite("Fuzz: lists of URLs", .timeLimit(.minutes(10))) struct ListFuzzTests {
    private static let corpus = [
        "http://a.example/1\n  output=name.zip\n  checksum=md5:00000000000000000000000000000000\n",
        "https://b.example/2\r\n\tdirectory sub\r\n\toutput = deep/file\r\nhttps://b.example/3\r\n",
        "http://u:p@a.example/4\n  limit-rate=1M\n  mirror=http://m.example/4\n# note\n\nhttp://a.example/5",
        "http://a.example/6\n  output=link/x\nhttp://a.example/7\n  directory=sub/../..\n",
        "http://a.example/8\n  insecure\n  header=X: y\n  --output x\nsequential\n  http://a.example/9\n",
        "\u{FEFF}http://a.example/10\n  output=-\nhttp://a.example/11\n  output=../x\n  directory=/etc\n",
    ]
    private static let words =
        [
            "\n", "\r\n", "\n  ", "\n\t", "  ", "=", "output=", "directory=", "out=", "..", "../", "/..", "./", "//",
            "/", "/\u{301}", ".\u{301}", "\u{301}", "link/", "link", "sub/", "sub/up/", ".ssh/", "-", "~", "#",
            "/dev/stdout",
            "\nhttp://a.example/", "CON", "a\\b", "\u{202E}",
        ] + Setting.allCases.map { "\n  \($0.rawValue)=" } + Setting.allCases.map { "\n  \($0.rawValue)" }

    @Test("Entries do not depend on how the bytes are split")
    func parser() {
        let problem = ByteFuzzer(name: "BatchListParser", corpus: Self.corpus, words: Self.words).firstViolation {
            bytes, generator in
            let entries = Self.entries(bytes) { bytes.count }
            if entries != Self.entries(bytes, { generator.below(12) }) { return "other entries in small pieces" }
            if entries.map(\.number) != entries.map(\.number).sorted() { return "lines out of order" }
            for entry in entries where entry.problem == nil {
                if entry.url.isEmpty || entry.url.utf8.first == 0x23 { return "no URL in line \(entry.number)" }
                if entry.url.utf8.contains(0x0A) { return "an end of line in a URL" }
                let lines = entry.options.map(\.number)
                if lines != lines.sorted() || lines.contains(where: { $0 <= entry.number }) { return "a wrong line" }
            }
            return nil
        }
        #expect(problem == nil)
    }

    private static func entries(_ bytes: [UInt8], _ size: () -> Int) -> [BatchEntry] {
        var splitter = BatchLineSplitter()
        var parser = BatchListParser()
        var entries: [BatchEntry] = []
        var rest = bytes[...]
        while !rest.isEmpty {
            var piece = rest.prefix(max(1, size()))
            rest = rest.dropFirst(piece.count)
            while let line = splitter.take(from: &piece) {
                if let entry = parser.take(line) { entries.append(entry) }
            }
        }
        if let line = splitter.finish(), let entry = parser.take(line) { entries.append(entry) }
        if let entry = parser.finish() { entries.append(entry) }
        return entries
    }

    @Test("A list names files below the directory of -d, and sets safe options only", arguments: [true, false])
    func downloads(hasDirectory: Bool) async throws {
        let place = try TestDirectory()
        for name in ["d/sub/deep", "d/.ssh", "outside"] {
            try FileManager.default.createDirectory(at: place.file(name), withIntermediateDirectories: true)
        }
        for (link, target) in [("d/link", "outside"), ("d/sub/up", "d")] {
            let place = (link: place.path(link), target: place.path(target))
            try FileManager.default.createSymbolicLink(atPath: place.link, withDestinationPath: place.target)
        }
        // One long list: each reader has a thread, and keeps its descriptors until the process ends.
        var list: [UInt8] = []
        _ = ByteFuzzer(name: "lists", corpus: Self.corpus, words: Self.words).firstViolation(
            runs: max(1, FuzzSettings.runs / 4)
        ) { bytes, _ in
            list += bytes + [0x0A]
            return nil
        }
        try Data(list).write(to: place.file("list"))

        var settings = DownloadSettings()
        if hasDirectory { settings.directory = place.path("d") }
        let queue = try DownloadQueue(urls: [], settings: settings, listPaths: [place.path("list")])
        var (accepted, named, failed) = (0, 0, 0)
        while true {
            switch await queue.next() {
            case .end:
                print("fuzz: lists: \(accepted) downloads, \(named) with a path, \(failed) failed")
                // Lists that are all refused would test nothing.
                #expect(accepted > failed / 10 && named > accepted / 20)
                return
            case .failed(let error):
                failed += 1
                guard !error.message.utf8.contains(where: ASCII.isControl) else {
                    Issue.record("seed \(FuzzSettings.seed): a control character in \(error.message.debugDescription)")
                    return
                }
            case .download(let options):
                accepted += 1
                if options.target != .file(directory: settings.directory, name: nil) { named += 1 }
                let base = hasDirectory ? settings.directory : nil
                guard let problem = Self.violation(options, below: base) ?? Self.unsafe(options) else { continue }
                Issue.record("seed \(FuzzSettings.seed): \(problem): \(options.url.withoutSecrets), \(options.target)")
                return
            }
        }
    }

    /// Returns why a path is not below the directory, by its bytes and by the file system.
    private static func violation(_ options: DownloadOptions, below base: String?) -> String? {
        guard case .file(let directory, let name) = options.target else { return "standard output" }
        if let name, SafeFileName.make(name)?.utf8.elementsEqual(name.utf8) != true { return "an unsafe name" }
        var rest = Array(directory.utf8)
        if let base {
            guard rest.starts(with: Array(base.utf8)) else { return "another directory" }
            rest.removeFirst(base.utf8.count)
            guard rest.isEmpty || rest.first == 0x2F else { return "a directory beside it" }
            // Links are followed where the directory exists.
            if let inner = realpath(directory, nil), let outer = realpath(base, nil) {
                defer {
                    free(inner)
                    free(outer)
                }
                let (inner, outer) = (String(cString: inner), String(cString: outer))
                if inner != outer, !inner.hasPrefix(outer + "/") { return "a directory behind a link" }
            }
        } else if rest.first == 0x2F {
            return "an absolute directory"
        }
        let components = rest.split(separator: 0x2F)
        return components.contains { $0.first == 0x2E && $0.count > 1 } ? "a hidden or upper directory" : nil
    }

    /// Returns the name of an option that only the command line may set and that differs from its default.
    private static func unsafe(_ options: DownloadOptions) -> String? {
        var plain = DownloadOptions(url: options.url, target: options.target, transfer: .ofCommand)
        plain.connection.user = options.connection.user
        if options.url.userInfo == nil, options.connection.user != nil { return "a user" }
        if options.connection != plain.connection { return "how to connect" }
        if options.userFields != plain.userFields { return "a header" }
        if options.existing != plain.existing || options.changed != plain.changed {
            return "overwriting"
        }
        if options.allowsDowngrade || options.maximumRedirects != plain.maximumRedirects { return "redirects" }
        if options.allowsUnsafeResume || options.ignoresServerChecksums || options.acceptsWebPages || !options.durable
            || !options.reservesSpace
        {
            return "safety"
        }
        if options.maximumTries != plain.maximumTries || options.retryWait != plain.retryWait { return "tries" }
        if options.connections != nil || options.isSequential || options.stallTimeout != plain.stallTimeout {
            return "speed"
        }
        return nil
    }
}
