import TowlineCore
import TowlineCurl
import TowlineEngine

/// Parsers for the values of options about the connection.
extension OptionValue {
    /// Parses `HOST:PORT:ADDRESS[,ADDRESS]…`, the format of curl's `--resolve`.
    static func fixedAddresses(_ value: String) throws(TowlineError) -> ConnectionOptions.FixedAddresses {
        let isBracketed = value.hasPrefix("[")
        let hostEnd = value.firstIndex(of: isBracketed ? "]" : ":").map { isBracketed ? value.index(after: $0) : $0 }
        guard let hostEnd, hostEnd < value.endIndex else { throw unusableAddresses(value) }
        let parts = value[hostEnd...].dropFirst().split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
        guard parts.count == 2, let url = try? HTTPURL(parsing: "http://\(value[..<hostEnd]):\(parts[0])/"),
            Int(parts[0]) != nil, url.pathAndQuery == "/", url.userInfo == nil
        else { throw unusableAddresses(value) }
        var addresses: [String] = []
        for part in parts[1].split(separator: ",", omittingEmptySubsequences: false) {
            let isIPv6 = part.hasPrefix("[") && part.hasSuffix("]")
            let address = String(isIPv6 ? part.dropFirst().dropLast() : part)
            guard NumericAddress.isValid(address) else { throw unusableAddresses(value) }
            addresses.append(address)
        }
        return ConnectionOptions.FixedAddresses(host: url.host, port: url.port, addresses: addresses)
    }

    private static func unusableAddresses(_ value: String) -> TowlineError {
        TowlineError(
            .unusableOption,
            "'\(TerminalSafeText.make(value, width: 60))' is not of the form HOST:PORT:ADDRESS[,ADDRESS], for example"
                + " example.org:443:192.0.2.1")
    }

    /// Checks a file with a client certificate. Returns its path and its format.
    static func clientCertificate(
        _ path: String
    ) throws(TowlineError) -> (String, ConnectionOptions.ClientCertificate.Form) {
        do {
            _ = try readableFile(path)
        } catch {
            // curl's form FILE:PASSWORD would show the password in the process list.
            guard let colon = path.lastIndex(of: ":"), (try? readableFile(String(path[..<colon]))) != nil else {
                throw error
            }
            throw TowlineError(
                .unusableOption,
                "a password after the name of the file is not accepted, because other users could see it."
                    + " Write the password to a file and give that with --key-password-file FILE")
        }
        guard TextFile.isRegular(path), let bytes = TextFile.bytes(path, limit: 16 << 20) else { return (path, .pem) }
        if String(decoding: bytes, as: UTF8.self).contains("-----BEGIN ") { return (path, .pem) }
        // A PKCS#12 file is one ASN.1 sequence in DER.
        guard bytes.first == 0x30 else {
            throw TowlineError(
                .unusableOption,
                "the file '\(TerminalSafeText.make(path, width: 60))' is neither a PEM nor a PKCS#12 file. Convert the"
                    + " certificate to PEM")
        }
        return (path, .pkcs12)
    }
}
