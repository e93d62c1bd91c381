import CCurl
package import TowlineCore
package import TowlineEngine

/// The functions that read and change the cookies of an easy handle. They are removed before another attempt uses the
/// handle.
extension EasyHandle {
    /// The cookies that the handle has now, one per line of the Netscape format; also empty if libcurl cannot list
    /// them.
    var cookies: [String] {
        var list: UnsafeMutablePointer<curl_slist>?
        guard ccurl_get_list(pointer, CURLINFO_COOKIELIST, &list) == CURLE_OK else { return [] }
        defer { curl_slist_free_all(list) }
        var lines: [String] = []
        var next = list
        while let entry = next?.pointee {
            // Bytes that are not UTF-8 must be preserved, as in all fields of a server.
            if let data = entry.data {
                lines.append(FieldText.decode(UnsafeRawBufferPointer(start: data, count: strlen(data))))
            }
            next = entry.next
        }
        return lines
    }

    /// Adds cookies for the next request, one per line of the Netscape format. libcurl sends the ones that match the
    /// URL.
    func lend(_ cookies: [String]) {
        lentCookies = cookies
        for line in cookies { set(CURLOPT_COOKIELIST, line) }
    }

    /// Removes all cookies from the handle, because the next attempt may belong to another download.
    func dropCookies() {
        lentCookies = []
        set(CURLOPT_COOKIELIST, "ALL")
    }

    /// Reads a cookie file, in the Netscape format or as `Set-Cookie` fields. Throws `local` if the file cannot be read
    /// or memory ran out.
    static func cookies(inFile path: String) throws(TransportFailure) -> [String] {
        try ConnectionPool.checkReadable("cookie file", path)
        guard CurlLibrary.initialisation == CURLE_OK, let reader = EasyHandle() else {
            throw TransportFailure(.local, FailureTable.outOfMemory)
        }
        reader.set(CURLOPT_COOKIEFILE, path)
        reader.set(CURLOPT_COOKIELIST, "RELOAD")
        return reader.cookies
    }
}

extension ConnectionOptions {
    /// Returns the cookies of the user's file that the host of a URL may get, one per line of the Netscape format.
    ///
    /// - Throws: `unusableOption` if the file cannot be read.
    package func storedCookies(for url: HTTPURL) throws(TowlineError) -> [String] {
        guard let cookieFile else { return [] }
        // libcurl matches the ASCII form of the host (IDNA), which the jar does not know.
        let host = url.host.utf8.allSatisfy { $0 < 0x80 } ? url.host : nil
        do throws(TransportFailure) {
            return try cookies.lines(for: host, isEncrypted: true, stored: true) { () throws(TransportFailure) in
                try EasyHandle.cookies(inFile: cookieFile)
            }
        } catch {
            throw TowlineError(.unusableOption, error.message)
        }
    }
}
