import Glibc
import Synchronization
import TowlineCore
import TowlineEngine

/// The downloads of a `tow get` command, in order: the URLs of the command line, then those of the lists.
final class DownloadQueue: Sendable {
    private struct List: Sendable {
        /// The name, safe to print.
        let name: String
        let reader: BatchListReader
    }

    /// The position in the URLs and lists, and the servers that may receive the secrets.
    private struct Position {
        var urls: ArraySlice<HTTPURL>
        /// The number of the last download that was returned.
        var number = 0
        /// The index of the current list, and whether it has had no entry so far.
        var list = 0
        var isEmpty = true
        /// The last URL of a list: the next one usually has the same origin.
        var last: HTTPURL?
        var emptyLists: [String] = []
        var secrets: SecretScope
    }

    private let state: Mutex<Position>
    private let settings: DownloadSettings
    /// The settings of downloads of a list whose servers must not see the secrets; `nil` if there are no secrets.
    private let settingsWithoutSecrets: DownloadSettings?
    /// `true` if lists may set every option (`--list-options all`).
    private let trustsLists: Bool
    private let lists: [List]
    /// The lines of the lists that the running downloads come from.
    let places: ListPlaces

    /// - Parameters:
    ///   - listPaths: the paths of the lists (`-i`); `-` is standard input.
    ///   - trustsLists: `true` if lists may set every option and every path (`--list-options all`).
    ///   - secrets: the servers that receive the secrets of `settings`.
    init(
        urls: [HTTPURL], settings: DownloadSettings, listPaths: [String], trustsLists: Bool = false,
        secrets: SecretScope = SecretScope(naming: [])
    ) throws(TowlineError) {
        state = Mutex(Position(urls: urls[...], secrets: secrets))
        self.settings = settings
        self.trustsLists = trustsLists
        settingsWithoutSecrets = settings.hasSecrets ? settings.withoutSecrets : nil
        // Open all lists before the first download.
        let lists = try listPaths.map { path throws(TowlineError) in
            let name = path == "-" ? "standard input" : TerminalSafeText.make(path)
            return List(name: name, reader: try BatchListReader(path: path))
        }
        self.lists = lists
        places = ListPlaces(names: lists.map(\.name))
    }

    /// Returns the next download, or the error in it. Each has the next number in the batch. Supports one call at a
    /// time.
    nonisolated(nonsending) func next() async -> BatchRunner.NextDownload {
        let url = state.withLock { state in
            state.number += 1
            return state.urls.popFirst()
        }
        do throws(TowlineError) {
            if let url { return .download(try baseSettings(for: url.origin).options(for: url)) }
            while let list = state.withLock({ $0.list < lists.count ? lists[$0.list] : nil }) {
                if let entry = await list.reader.next() { return .download(try options(for: entry, of: list.name)) }
                goOn(after: list)
            }
            return .end
        } catch {
            return .failed(error)
        }
    }

    private func goOn(after list: List) {
        state.withLock { state in
            if state.isEmpty, !list.reader.isStopped { state.emptyLists.append(list.name) }
            state.list += 1
            state.isEmpty = true
        }
    }

    /// The names of the lists that were read to their end and contain no entry.
    var emptyLists: [String] { state.withLock { $0.emptyLists } }

    /// Stops reading the lists, so that they start no further download.
    func stop() { for list in lists { list.reader.stop() } }

    private func options(for entry: BatchEntry, of list: String) throws(TowlineError) -> DownloadOptions {
        let last = state.withLock { state in
            state.isEmpty = false
            // An entry for a failed read has no line.
            if case .unreadable = entry.problem { return state.last }
            places.note(state.number, list: state.list, line: entry.number)
            return state.last
        }
        try entry.check(in: list)
        do throws(TowlineError) {
            let url = try HTTPURL(typed: entry.url, after: last)
            state.withLock { $0.last = url }
            var settings = try baseSettings(for: url.origin)
            for line in entry.options { try apply(line, of: list, to: &settings) }
            let options = try settings.options(for: url)
            guard case .file(let directory, _) = options.target else {
                throw TowlineError(
                    .unusableOption,
                    "this URL is not downloaded because a list cannot download to standard output."
                        + " Replace output=- with output=NAME")
            }
            // Without an option, the directory is that of the command line.
            if !trustsLists, !entry.options.isEmpty {
                do throws(TowlineError) {
                    try ListPath.check(directory, isBelow: self.settings.directory)
                } catch {
                    throw Self.untrusted(error)
                }
            }
            return options
        } catch {
            // An error in an option already begins with the line of the option.
            throw error.message.hasPrefix("\(list), line ")
                ? error : ListPlaces.Line(list: list, line: entry.number).problem(error.message, error.code)
        }
    }

    /// Returns the settings of the command line for a server, without the secrets if the server must not receive them.
    private func baseSettings(for origin: HTTPURL.Origin) throws(TowlineError) -> DownloadSettings {
        guard let settingsWithoutSecrets else { return settings }
        let admitted = state.withLock { state in
            Result { () throws(TowlineError) in try state.secrets.admits(origin) }
        }
        return try admitted.get() ? settings : settingsWithoutSecrets
    }

    private func apply(
        _ line: BatchEntry.Line, of list: String, to settings: inout DownloadSettings
    ) throws(TowlineError) {
        let setting = try line.setting(in: list)
        do throws(TowlineError) {
            try settings.apply(setting, try checked(setting, line.value))
        } catch {
            throw ListPlaces.Line(list: list, line: line.number)
                .problem("\(setting.rawValue): \(error.message)", error.code)
        }
    }

    /// Returns the value of an option as it applies in a list.
    ///
    /// - Throws: `unusableOption` if a list must not set the option, or not to this value.
    private func checked(_ setting: Setting, _ value: String) throws(TowlineError) -> String {
        guard !trustsLists else { return value }
        guard setting.isSafeInList else {
            throw TowlineError(
                .unusableOption,
                "not allowed in a list. Use --list-options all if you trust the list, or give the option on the command line"
            )
        }
        do throws(TowlineError) {
            switch setting {
            case .output: return value == "-" ? value : try ListPath.file(value)
            case .directory:
                let path = try ListPath.directory(value)
                return self.settings.directory == "." ? path : self.settings.directory + "/" + path
            default: return value
            }
        } catch {
            throw Self.untrusted(error)
        }
    }

    private static func untrusted(_ error: TowlineError) -> TowlineError {
        TowlineError(error.code, error.message + ". Use --list-options all if you trust the list")
    }
}
