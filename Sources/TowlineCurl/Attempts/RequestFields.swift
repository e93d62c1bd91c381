import CCurl
internal import TowlineCore
internal import TowlineEngine

extension AttemptRequest {
    /// The header fields of the request. If Content-Length is ignored, includes `Connection: close`, so that the server
    /// marks the end of the body.
    var fieldsToSend: HTTPFields {
        guard connection.ignoresLength else { return fields }
        var fields = fields
        fields.append(name: "Connection", value: "close")
        return fields
    }
}

/// Checks that keep a request's URL and header fields from corrupting the request, and the conversion to libcurl's
/// list.
enum RequestFields {
    /// Returns whether a byte may occur in the name of a field (`tchar`, RFC 9110 §5.6.2).
    static func isTokenByte(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x30...0x39, 0x41...0x5A, 0x61...0x7A: true
        case 0x21, 0x23...0x27, 0x2A, 0x2B, 0x2D, 0x2E, 0x5E...0x60, 0x7C, 0x7E: true
        default: false
        }
    }

    /// Checks a URL. Throws `local` if it could corrupt the request: if it contains a control character or white space,
    /// or does not begin with http:// or https://.
    static func check(_ url: String) throws(TransportFailure) {
        guard url.hasPrefix("http://") || url.hasPrefix("https://") else {
            throw TransportFailure(.local, "the URL must begin with http:// or https://, so no request was sent")
        }
        let isClean = url.utf8.withContiguousStorageIfAvailable { $0.allSatisfy { $0 > 0x20 && $0 != 0x7F } }
        guard isClean ?? url.utf8.allSatisfy({ $0 > 0x20 && $0 != 0x7F }) else {
            throw TransportFailure(
                .local, "the URL contains a control character or a space, which must be percent-encoded or removed")
        }
    }

    /// Checks header fields. Throws `local` if a field could corrupt the request: by a control character or an invalid
    /// name (RFC 9110 §5.1, §5.5).
    static func check(_ fields: HTTPFields) throws(TransportFailure) {
        for line in fields.lines {
            guard !line.name.isEmpty, line.name.utf8.allSatisfy(isTokenByte) else {
                throw TransportFailure(
                    .local,
                    "a header that was set for this request has an empty or invalid name, which must be corrected")
            }
            let isPlain = line.value.utf8.allSatisfy { (0x20...0x7E).contains($0) }
            guard isPlain || FieldText.encode(line.value).allSatisfy({ $0 >= 0x20 && $0 != 0x7F || $0 == 0x09 }) else {
                let reason = "the request header \(line.name) contains a control character, which must be removed"
                throw TransportFailure(.local, reason)
            }
        }
    }

    /// Returns the fields as libcurl's list, which the caller frees with `curl_slist_free_all`; `nil` if memory ran
    /// out.
    ///
    /// libcurl adds `Accept: */*` by default. In its lists, a name with only a colon removes libcurl's own field, and a
    /// name with a semicolon sends a field without a value (`CURLOPT_HTTPHEADER(3)`).
    static func list(_ fields: HTTPFields) -> UnsafeMutablePointer<curl_slist>? {
        var list: UnsafeMutablePointer<curl_slist>?
        if !fields.has("Accept") { list = curl_slist_append(nil, "Accept:") }
        // One buffer for all fields, since libcurl copies each text.
        var text: [UInt8] = []
        text.reserveCapacity(128)
        // libcurl's own field costs less than one in the list. An empty list would be `nil`, as if memory ran out.
        let isUsual = fields.values(named: "Accept") == ["*/*"] && fields.lines.count > 1
        for line in fields.lines where !(isUsual && HTTPFields.equalNames(line.name, "Accept")) {
            text.removeAll(keepingCapacity: true)
            text.append(contentsOf: line.name.utf8)
            text.append(0x3A)
            text.append(0x20)
            let start = text.count
            FieldText.encode(line.value, into: &text)
            if text.count == start {
                text.removeLast(2)
                text.append(0x3B)
            }
            text.append(0)
            let longer = text.withUnsafeBytes { bytes in
                curl_slist_append(list, bytes.assumingMemoryBound(to: CChar.self).baseAddress)
            }
            guard let longer else {
                curl_slist_free_all(list)
                return nil
            }
            list = longer
        }
        return list
    }
}
