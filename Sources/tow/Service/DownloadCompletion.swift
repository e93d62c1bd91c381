import ArgumentParser
import Glibc
import Synchronization
import TowlineWire

/// What a shell completes of the names of downloads: it asks the service, and offers nothing if that takes time.
enum DownloadCompletion {
    /// Completes names of downloads.
    static let kind = CompletionKind.custom { words, _, beginning in names(words: words, beginning: beginning) }

    private static let timeout = Duration.seconds(1)

    /// The short names, as `tow list` shows them; once more than that is typed, the whole ones.
    ///
    /// - Parameter words: the command line, which may say which service is meant.
    private static func names(words: [String], beginning: String) -> [String] {
        var options = ServiceOptions()
        options.state = value(of: "--state", in: words)
        options.socket = value(of: "--socket", in: words)
        let client = ServiceClient(socket: options.places.socket, timeout: timeout)
        let answer = wait { try await client.page([("limit", "1000"), ("order", "added"), ("descending", "true")]) }
        return candidates((answer?.downloads ?? []).map(\.id), beginning: beginning)
    }

    /// Those of the names that may be meant, in capitals or not as typed: the shell keeps what begins so.
    static func candidates(_ ids: [String], beginning: String) -> [String] {
        let capitals = beginning.uppercased()
        let short = ids.map { DownloadLines.short($0) }.filter { $0.hasPrefix(capitals) }
        let names = short.isEmpty ? ids.filter { $0.hasPrefix(capitals) } : short
        return beginning == capitals ? names : names.map { $0.lowercased() }
    }

    /// What an option is given, as `--name value` or `--name=value`.
    static func value(of option: String, in words: [String]) -> String? {
        for (word, following) in zip(words, words.dropFirst() + [""]) {
            if word == option, !following.isEmpty { return following }
            if word.hasPrefix(option + "=") { return String(word.dropFirst(option.count + 1)) }
        }
        return nil
    }

    /// The parser wants the names at once, on the thread that has nothing else to do.
    private static func wait<Value: Sendable>(_ body: @escaping @Sendable () async throws -> Value) -> Value? {
        var ends: [Int32] = [-1, -1]
        guard pipe(&ends) == 0 else { return nil }
        let box = Box<Value>()
        let writer = ends[1]
        Task.detached {
            let value = try? await body()
            box.value.withLock { $0 = value }
            close(writer)
        }
        var byte: UInt8 = 0
        while read(ends[0], &byte, 1) == -1, errno == EINTR {}
        close(ends[0])
        return box.value.withLock { $0 }
    }

    private final class Box<Value: Sendable>: Sendable {
        let value = Mutex<Value?>(nil)
    }
}
