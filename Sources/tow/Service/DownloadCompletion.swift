import ArgumentParser
import Glibc
import Synchronization
import TowlineClient
import TowlineWire

/// Shell completion of download IDs. Queries the service, and offers nothing if the response takes too long.
enum DownloadCompletion {
    static let kind = CompletionKind.custom { words, _, beginning in names(words: words, beginning: beginning) }

    private static let timeout = Duration.seconds(1)

    /// Returns the matching short IDs, as `tow list` shows them, or the matching full IDs if no short ID matches.
    ///
    /// - Parameter words: the command line, whose options may select a service.
    private static func names(words: [String], beginning: String) -> [String] {
        var options = ServiceOptions()
        options.state = value(of: "--state", in: words)
        options.socket = value(of: "--socket", in: words)
        let client = ServiceClient(socket: options.places.socket, timeout: timeout)
        let answer = wait { try await client.page([("limit", "1000"), ("order", "added"), ("descending", "true")]) }
        return candidates((answer?.downloads ?? []).map(\.id), beginning: beginning)
    }

    /// Returns the matching IDs, in lower case if the text was typed so: the shell keeps only IDs that begin with the
    /// text.
    static func candidates(_ ids: [String], beginning: String) -> [String] {
        let capitals = beginning.uppercased()
        let short = ids.map { DownloadLines.short($0) }.filter { $0.hasPrefix(capitals) }
        let names = short.isEmpty ? ids.filter { $0.hasPrefix(capitals) } : short
        return beginning == capitals ? names : names.map { $0.lowercased() }
    }

    /// Returns the value of an option, given as `--name value` or `--name=value`; `nil` if there is no such option.
    static func value(of option: String, in words: [String]) -> String? {
        for (word, following) in zip(words, words.dropFirst() + [""]) {
            if word == option, !following.isEmpty { return following }
            if word.hasPrefix(option + "=") { return String(word.dropFirst(option.count + 1)) }
        }
        return nil
    }

    /// Runs `body` and blocks this thread until it ends: the parser needs the IDs at once, and the thread has no other
    /// work.
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
