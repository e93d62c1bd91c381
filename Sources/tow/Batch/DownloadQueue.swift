import Glibc
import Synchronization
import TowlineCore
import TowlineEngine

/// What `tow get` was asked for, one download after the other: the URLs of the command line, then the list.
final class DownloadQueue: Sendable {
    private let urls: Mutex<ArraySlice<HTTPURL>>
    private let settings: DownloadSettings
    private let list: BatchListReader?
    /// The last one of the list: the next mostly has the same origin.
    private let last = Mutex<HTTPURL?>(nil)
    private let listName: String

    /// - Parameter listPath: the list of `-i`, `-` for standard input.
    init(urls: [HTTPURL], settings: DownloadSettings, listPath: String?) throws(TowlineError) {
        self.urls = Mutex(urls[...])
        self.settings = settings
        listName = listPath == "-" ? "standard input" : listPath.map { TerminalSafeText.make($0) } ?? ""
        list = if let listPath { try BatchListReader(path: listPath) } else { nil }
    }

    /// The next download, or what is wrong with it. One call at a time.
    nonisolated(nonsending) func next() async -> BatchRunner.NextDownload {
        do throws(TowlineError) {
            if let url = urls.withLock({ $0.popFirst() }) { return .download(try settings.options(for: url)) }
            guard let entry = await list?.next() else { return .end }
            return .download(try options(for: entry))
        } catch {
            return .failed(error)
        }
    }

    /// No further download begins.
    func stop() { list?.stop() }

    private func options(for entry: BatchEntry) throws(TowlineError) -> DownloadOptions {
        switch entry.problem {
        case .optionWithoutURL: throw problem(entry.number, "an option before any URL")
        case .optionNotIndented(let line):
            let name = TerminalSafeText.make(line.name, width: 40)
            throw problem(
                line.number, "'\(name)' is an option of the URL above and must be indented; the download is left out")
        case .lineTooLong(let number):
            throw problem(number, "longer than \(BatchLineSplitter.maximumLength) bytes; the download is left out")
        case .unreadable(let number):
            let place = entry.number > 0 ? " after line \(entry.number)" : ""
            throw TowlineError(
                .unusableOption, "cannot read \(listName)\(place): \(String(cString: strerror(number)))")
        case nil: break
        }
        var settings = settings
        for line in entry.options { try apply(line, to: &settings) }
        do throws(TowlineError) {
            let url = try HTTPURL(parsing: entry.url, after: last.withLock { $0 })
            last.withLock { $0 = url }
            let options = try settings.options(for: url)
            guard options.target == .standardOutput else { return options }
            throw TowlineError(.unusableOption, "a download of a list cannot go to standard output")
        } catch {
            throw problem(entry.number, error.message, error.code)
        }
    }

    private func apply(_ line: BatchEntry.Line, to settings: inout DownloadSettings) throws(TowlineError) {
        guard let setting = Setting(rawValue: line.name) else {
            let name = TerminalSafeText.make(line.name, width: 40)
            let here = Habit.setting(line.name).map { ": that is \($0.rawValue)" } ?? ""
            throw problem(line.number, "there is no option '\(name)' for a single URL\(here)")
        }
        guard setting.isFlag == line.value.isEmpty else {
            throw problem(
                line.number, setting.isFlag ? "\(setting.rawValue) takes no value" : "\(setting.rawValue) needs a value"
            )
        }
        do {
            try settings.apply(setting, line.value)
        } catch {
            throw problem(line.number, "\(setting.rawValue): \(error.message)", error.code)
        }
    }

    private func problem(
        _ line: Int, _ message: String, _ code: TowlineError.Code = .unusableOption
    ) -> TowlineError {
        TowlineError(code, "\(listName), line \(line): \(message)")
    }
}
