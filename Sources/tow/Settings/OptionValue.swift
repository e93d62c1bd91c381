import Glibc
import TowlineCore
import TowlineEngine

/// Parsers for the values of options. Error messages describe valid values.
enum OptionValue {
    static func text(_ value: String) throws(TowlineError) -> String {
        guard !value.isEmpty, !value.utf8.contains(0) else {
            throw unusable("the value must not be empty and must not contain a NUL character")
        }
        return value
    }

    static func integer(_ value: String, in range: ClosedRange<Int>) throws(TowlineError) -> Int {
        guard let number = Int(value), range.contains(number) else {
            throw unusable("\(shown(value)) is not a whole number from \(range.lowerBound) to \(range.upperBound)")
        }
        return number
    }

    /// Parses HTTP statuses of responses without the file, such as `403,404`.
    static func statuses(_ value: String) throws(TowlineError) -> Set<Int> {
        var statuses: Set<Int> = []
        for member in value.split(separator: ",", omittingEmptySubsequences: false) {
            let digits = member.drop { $0 == " " }
            guard digits.count == 3, let status = Int(digits), TransferOptions.mayRetry(status: status) else {
                throw unusable(
                    "\(shown(value)) is not a list of HTTP statuses such as 403,404."
                        + " Valid statuses: 202 and 400 to 599, except 407 and 416")
            }
            statuses.insert(status)
        }
        return statuses
    }

    /// Returns the case of an enum with this raw value.
    static func choice<Choice: RawRepresentable<String> & CaseIterable>(_ value: String) throws(TowlineError) -> Choice
    {
        guard let choice = Choice(rawValue: value) else {
            let valid = Choice.allCases.map(\.rawValue).joined(separator: ", ")
            throw unusable("\(shown(value)) is not a valid value. Valid values: \(valid)")
        }
        return choice
    }

    /// Parses seconds, with an optional fraction and an optional `s`. They must be above 0 and at most `most`.
    static func seconds(_ value: String, atMost most: Int = 86_400) throws(TowlineError) -> Duration {
        let digits = value.hasSuffix("s") ? value.dropLast() : value[...]
        let plain = digits.utf8.allSatisfy { (0x30...0x39).contains($0) || $0 == 0x2E }
        guard plain, let seconds = Double(digits), seconds > 0, seconds <= Double(most) else {
            throw unusable("\(shown(value)) is not a number of seconds from 0.001 to \(most)")
        }
        return .milliseconds(max(1, Int64((seconds * 1000).rounded())))
    }

    /// Parses a rate in bytes per second, such as `500K` or `10M`.
    static func rate(_ value: String) throws(TowlineError) -> Int64 {
        let text = value.hasSuffix("/s") ? String(value.dropLast(2)) : value
        let rate = try ByteCountText.parse(text)
        guard rate > 0 else {
            throw unusable(
                "the rate limit \(shown(value)) must be greater than 0."
                    + " For no limit, omit the option. To remove the limit of towd, run 'tow limit none'")
        }
        return rate
    }

    /// Parses a size in bytes, such as `2G`.
    static func size(_ value: String) throws(TowlineError) -> Int64 { try ByteCountText.parse(value) }

    /// Parses a header field of the form `Name: value`. Messages do not show the value, which may be a secret.
    static func field(_ value: String) throws(TowlineError) -> HTTPFields.Field {
        try FieldValidation.parseUserHeader(value)
    }

    /// Checks credentials of the form `NAME:PASSWORD`.
    static func credentials(_ value: String) throws(TowlineError) -> String {
        guard value.contains(":") else {
            throw unusable("the credentials contain no colon. The expected form is NAME:PASSWORD")
        }
        guard value.unicodeScalars.allSatisfy({ $0.value >= 0x20 && $0.value != 0x7F }) else {
            throw unusable("the user name or password contains a control character, which must be removed")
        }
        return value
    }

    /// Returns the first line of a file.
    static func secret(inFile path: String) throws(TowlineError) -> String {
        guard let text = TextFile.read(path, limit: 64 * 1024) else { throw unreadable(path) }
        let line = text.prefix { !$0.isNewline }
        guard !line.isEmpty else {
            throw unusable(
                "the first line of \(shown(path)) is empty."
                    + " It must contain NAME:PASSWORD (--user-file), the token (--bearer-file) or the password of the key"
                    + " (--key-password-file)")
        }
        return String(line)
    }

    /// Returns the path if the file can be read. Checked now, because a failure hours into a download is worse.
    static func readableFile(_ path: String) throws(TowlineError) -> String {
        guard ByteText.withCString(path, { access($0, R_OK) }) == 0 else { throw unreadable(path) }
        return path
    }

    /// Returns the path if the file contains PEM certificates (RFC 7468). A pipe is not read: libcurl could not read
    /// the bytes again.
    static func certificateFile(_ path: String) throws(TowlineError) -> String {
        let path = try readableFile(path)
        guard TextFile.isRegular(path), let bytes = TextFile.bytes(path, limit: 16 << 20)
        else { return path }
        // The text also occurs in `X509 CERTIFICATE` and `TRUSTED CERTIFICATE`.
        guard String(decoding: bytes, as: UTF8.self).contains(" CERTIFICATE-----") else {
            throw unusable(
                "the file \(shown(path)) contains no PEM certificate (a block that starts with"
                    + " -----BEGIN CERTIFICATE-----). Convert the certificate to PEM or give another file")
        }
        return path
    }

    /// Checks the URL of a proxy. Messages do not show its user info, which may be a secret.
    static func proxy(_ value: String) throws(TowlineError) -> String {
        _ = try ProxyAddress(parsing: value)
        return value
    }

    private static func unreadable(_ path: String) -> TowlineError {
        unusable("cannot read \(shown(path)): \(String(cString: strerror(errno)))")
    }

    static func shown(_ value: String) -> String { "'\(TerminalSafeText.make(value, width: 60))'" }

    static func unusable(_ message: String) -> TowlineError { TowlineError(.unusableOption, message) }
}
