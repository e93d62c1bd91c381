import TowlineCore
import TowlineWire

/// A reader of lists of URLs for the service, with the options that `tow get` accepts in every list.
struct AddList {
    /// The options of the command line.
    let model: Wire.NewDownload
    /// The settings of the command line that `model` contains.
    let settings: DownloadSettings

    /// Reads a list to its end; `-` is standard input. Refuses the whole list after one error.
    ///
    /// - Returns: the requests, and notices about text that is not used.
    /// - Throws: `unusableOption` or `unusableURL` with the list and the line.
    func requests(in path: String) throws(TowlineError) -> ([Wire.NewDownload], notices: [String]) {
        let name = path == "-" ? "standard input" : TerminalSafeText.make(path)
        let (lines, failure) = try BatchListReader.lines(of: path)
        let list = try PastedList(lines, name: name)
        var parser = BatchListParser()
        var requests: [Wire.NewDownload] = []
        for line in list.lines {
            guard let entry = parser.take(line.content, number: line.number) else { continue }
            requests.append(try request(for: entry, of: name))
        }
        if let entry = failure.map({ parser.fail($0) }) ?? parser.finish() {
            requests.append(try request(for: entry, of: name))
        }
        return (requests, list.notices)
    }

    func request(for entry: BatchEntry, of list: String) throws(TowlineError) -> Wire.NewDownload {
        try entry.check(in: list)
        var request = model
        request.url = HTTPURL.withScheme(entry.url)
        var settings = settings
        var (directory, output): (String?, String?)
        do throws(TowlineError) {
            _ = try HTTPURL(parsing: request.url)
        } catch {
            throw ListPlaces.Line(list: list, line: entry.number).problem(error.message, error.code)
        }
        for line in entry.options {
            let setting = try line.setting(in: list)
            do throws(TowlineError) {
                switch setting {
                case .output: output = try ListPath.file(line.value)
                case .directory: directory = try ListPath.directory(line.value)
                case .checksum, .mirror, .limitRate: try settings.apply(setting, line.value)
                default: throw TowlineError(.unusableOption, Self.notHere)
                }
            } catch {
                throw ListPlaces.Line(list: list, line: line.number)
                    .problem("\(setting.rawValue): \(error.message)", error.code)
            }
        }
        request.take(settings)
        place(&request, directory, output)
        return request
    }

    private static let notHere =
        "tow add does not accept this option in a list, only output, directory, checksum, mirror and limit-rate."
        + " Remove the line, or give the option on the command line"

    /// Puts the paths of a list below the directory of the command line.
    private func place(_ request: inout Wire.NewDownload, _ directory: String?, _ output: String?) {
        var parts = [model.directory, directory].compactMap(\.self)
        if let output {
            let slash = output.utf8.lastIndex(of: 0x2F)
            if let slash { parts.append(String(output[..<slash])) }
            request.name = slash.map { String(output[output.utf8.index(after: $0)...]) } ?? output
        }
        if !parts.isEmpty { request.directory = parts.joined(separator: "/") }
    }
}
