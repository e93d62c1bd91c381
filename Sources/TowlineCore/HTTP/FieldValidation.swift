/// The rules for header fields that the user may add to requests.
package enum FieldValidation {
    /// Parses `Name: value`, the argument of the `-H` option of `tow`. The value may be empty; white space around it is
    /// removed.
    ///
    /// - Throws: `unusableHeader` if the name is not a token (RFC 9110 §5.1), if the value contains CR, LF, NUL or
    ///   another control character (a line break would start another field: CVE-2017-6508), and for fields that only
    ///   Towline may set, such as `Range`. The message does not show the value.
    package static func parseUserHeader(_ text: String) throws(TowlineError) -> HTTPFields.Field {
        let bytes = Array(text.utf8)
        guard let colon = bytes.firstIndex(of: 0x3A) else {
            throw TowlineError(
                .unusableHeader, "invalid header: there is no colon. Write the header in the form 'Name: value'")
        }
        let name = String(decoding: bytes[..<colon], as: UTF8.self)
        guard isValidName(name) else {
            throw TowlineError(
                .unusableHeader,
                "invalid header name '\(TerminalSafeText.make(name, width: 60))': use only letters, digits and hyphens")
        }
        var value = bytes[(colon + 1)...]
        while let first = value.first, first == 0x20 || first == 0x09 { value.removeFirst() }
        while let last = value.last, last == 0x20 || last == 0x09 { value.removeLast() }
        let field = HTTPFields.Field(name: name, value: String(decoding: value, as: UTF8.self))
        guard isValidValue(field.value) else {
            throw TowlineError(
                .unusableHeader,
                "the value of the header '\(name)' contains a control character such as a line break. "
                    + "Remove this character")
        }
        guard !HTTPFields.equalNames(name, "Host") || value.allSatisfy({ $0 < 0x80 }) && HostSyntax.isHostAndPort(value)
        else {
            throw TowlineError(
                .unusableHeader, "the value of the header 'Host' must be a host name, with a port if needed: HOST:PORT")
        }
        guard !ownFields.contains(ASCII.lowercased(name)) else {
            throw TowlineError(.unusableHeader, notSettable(name))
        }
        return field
    }

    /// Returns the error message for a user's header whose name only Towline may set.
    package static func notSettable(_ name: String) -> String {
        "the header '\(name)' cannot be set: only Towline itself may set this header. Remove this header"
    }

    /// Returns whether a name of a header field is valid: a token (RFC 9110 §5.1).
    package static func isValidName(_ name: String) -> Bool {
        !name.isEmpty && name.utf8.allSatisfy(ASCII.isTokenByte)
    }

    /// Returns whether a text may be a field value (RFC 9110 §5.5): it has no control character except the tab.
    package static func isValidValue(_ value: String) -> Bool {
        value.utf8.allSatisfy { $0 == 0x09 || !ASCII.isControl($0) }
    }

    /// The names of the header fields that a user cannot add, because only Towline sets them. Ranges and conditions
    /// decide which bytes may be joined; the other fields frame the message or belong to the connection.
    private static let ownFields: Set<String> = [
        "range", "if-range", "if-match", "if-none-match", "if-modified-since", "if-unmodified-since",
        "content-length", "transfer-encoding", "te", "trailer", "connection", "keep-alive", "proxy-connection",
        "upgrade", "expect", "http2-settings",
    ]
}
