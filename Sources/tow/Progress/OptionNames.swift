import TowlineCore
import TowlineEngine

/// Adds the options of `tow` to messages of the library.
enum OptionNames {
    /// Returns a message with the option of `tow` in parentheses after each part that names an option in other words.
    static func add(to message: String) -> String {
        Remedy.allCases.reduce(message) { message, remedy in
            [remedy.rawValue, remedy.sentence].reduce(message) { text, words in
                text.replacing(words, with: "\(words) (\(remedy.option))")
            }
        }
    }

    /// Returns an error whose message names options of `tow`, and the command that the error offers.
    static func add(to error: TowlineError) -> TowlineError {
        let message = add(to: error.message)
        guard case .replace(let path, let url, let policy) = error.order else { return error.with(message: message) }
        let words = ["tow", "get", "--if-exists", policy.rawValue, "-o", shownPath(path), url]
        return error.with(message: "\(message): \(words.map { ShellWord.quoted($0) }.joined(separator: " "))")
    }

    /// Returns a path as an argument: without `./` at the beginning, unless the rest would look like an option.
    private static func shownPath(_ path: String) -> String {
        let rest = path.utf8.starts(with: "./".utf8) ? String(path.dropFirst(2)) : path
        return rest.utf8.first == 0x2D ? "./" + rest : rest
    }

    /// Returns a notice whose message names options of `tow`.
    static func add(to notice: TransferNotice) -> TransferNotice {
        TransferNotice(notice.level, notice.kind, add(to: notice.message))
    }

    /// Returns a snapshot whose reasons name options of `tow`.
    static func add(to snapshot: TransferSnapshot) -> TransferSnapshot {
        guard snapshot.wait != nil || snapshot.startsOverBecause != nil else { return snapshot }
        var snapshot = snapshot
        if let reason = snapshot.wait?.reason { snapshot.wait?.reason = add(to: reason) }
        snapshot.startsOverBecause = snapshot.startsOverBecause.map { add(to: $0) }
        return snapshot
    }
}

extension Remedy {
    /// The option of `tow`.
    fileprivate var option: String {
        switch self {
        case .checksum: "--checksum"
        case .unsafeResume: "--unsafe-resume"
        case .ignoredChecksums: "--ignore-server-checksums"
        case .unencrypted: "--allow-downgrade"
        case .moreRedirects: "--max-redirects"
        case .anotherName: "--output"
        case .overwriting: "--if-exists overwrite"
        case .ownName: "--output"
        case .existing: "--if-exists overwrite or rename"
        case .startingOver: "--if-changed restart"
        case .acceptedChange: "--if-changed accept"
        case .longerWait: "--max-wait"
        case .headTimeout: "--head-timeout"
        case .largerFile: "--max-size"
        case .fileTarget: "-o FILE"
        case .wrongLength: "--ignore-length"
        case .ignoredLength: "--ignore-length"
        case .retriedStatus: "--retry-on"
        case .login: "--user or --bearer-file"
        case .proxyLogin: "--proxy"
        case .webPages: "--accept-html"
        case .clientCertificate: "--cert FILE, --key FILE"
        case .rejectedCertificate: "--cert"
        case .certificateFiles: "--cert, --key, --key-password-file"
        case .authorities: "--cacert FILE"
        }
    }
}
