import TowlineCore

extension RequestField {
    /// The option of `tow add` that sets the field, or the name of a field without an option.
    private var option: String {
        switch self {
        case .mirrors: "--mirror"
        case .headers: "--header"
        case .startsPaused: "--paused"
        case .rateLimit: "--limit-rate"
        case .existing: "--if-exists"
        case .stallTimeout: "--stall-timeout"
        case .maximumTries: "--max-tries"
        case .retryWait: "--retry-wait"
        case .maximumWait: "--max-wait"
        case .retryStatuses: "--retry-on"
        case .maximumRedirects: "--max-redirects"
        case .maximumSize: "--max-size"
        case .allowDowngrade: "--allow-downgrade"
        case .unsafeResume: "--unsafe-resume"
        case .ignoreServerChecksums: "--ignore-server-checksums"
        case .acceptHTML: "--accept-html"
        case .user, .cookies, .proxy, .priority, .group, .unpack, .connections, .checksum, .http1, .sequential:
            "--" + rawValue
        case .metadata, .certificateAuthorities, .netrcFile: rawValue
        }
    }

    /// Returns an error of `towd` whose message names the options of `tow add` instead of the fields of the API.
    static func namingOptions(_ error: TowlineError) -> TowlineError {
        guard error.code == .optionConflict else { return error }
        let options = error.fields.map { Self(rawValue: $0)?.option ?? $0 }
        let message = error.message.replacing(
            ": " + error.fields.joined(separator: ", ") + ". ", with: ": " + options.joined(separator: ", ") + ". ")
        return TowlineError(error.code, message)
    }
}
