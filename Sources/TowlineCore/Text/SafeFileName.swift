/// Makes safe file names from the names that servers suggest.
///
/// In other programs, a name from the network created `.wgetrc` in the home directory (CVE-2010-2252), files outside
/// the directory (CVE-2002-1344, CVE-2010-3842) or on another drive (CVE-2016-0754). A suggestion therefore becomes a
/// single path component without special characters.
package enum SafeFileName {
    /// The maximum length in bytes of a file name on common file systems (`NAME_MAX`).
    package static let longestByteCount = 255
    /// The maximum length in bytes of a safe name: 16 bytes are left for the suffixes of the part file and the journal
    /// (`.tow-journal`).
    package static let maximumByteCount = longestByteCount - 16

    /// Returns a safe name for a suggested one, or `nil` if no character of the suggestion remains. A safe name stays
    /// unchanged.
    ///
    /// The result is one path component of 1 to 239 bytes, without control, format or invisible characters and without
    /// `/ \ < > : " | ? *`. The name does not begin with a dot, dash or white space, and does not end with a dot or
    /// white space. Device names of Windows and names of part files or journals are changed.
    ///
    /// - Parameter isOfURL: `true` if the name comes from a URL, where the user has seen it: `:`, `?` and `*` stay, as
    ///   in curl and wget.
    package static func make(_ suggestion: String, isOfURL: Bool = false) -> String? {
        isPlain(suggestion.utf8) ? suggestion : cleaned(suggestion, isOfURL: isOfURL)
    }

    /// Returns whether a name is safe, so that `make` leaves it unchanged.
    package static func isSafe(_ name: String) -> Bool { make(name, isOfURL: true) == name }

    /// Returns the result of `make` without its fast path for plain names. Separate, so that tests can compare both.
    package static func cleaned(_ suggestion: String, isOfURL: Bool = false) -> String? {
        let bytes = suggestion.utf8
        let lastSeparator = bytes.lastIndex { $0 == 0x2F || $0 == 0x5C }
        var scalars = Array(suggestion.unicodeScalars[(lastSeparator.map(bytes.index(after:)) ?? bytes.startIndex)...])
        scalars.removeAll { isInvisible($0) && !isJoiner($0) }
        scalars = trimmed(withoutLooseJoiners(scalars))
        if !isOfURL, isDriveLetter(scalars) { scalars = trimmed(Array(scalars.dropFirst(2))) }
        guard !scalars.isEmpty else { return nil }
        var name = ""
        name.unicodeScalars.append(contentsOf: scalars.map { isReserved($0, isOfURL) ? "_" : $0 })
        // Shortening comes first, because a shortened name may be the name of a device.
        name = shortened(name)
        if name.unicodeScalars.contains(where: isJoiner) {
            // A joiner at the end of a shortened name joins nothing.
            var joined = String.UnicodeScalarView()
            joined.append(contentsOf: withoutLooseJoiners(Array(name.unicodeScalars)))
            name = String(joined)
        }
        if isDeviceName(name) { name = shortened("_" + name) }
        return withoutOwnSuffix(name)
    }

    /// Returns whether `cleaned` would not change a name: like most names, it has only letters, digits, `-`, `_` and at
    /// most one extension.
    private static func isPlain(_ bytes: String.UTF8View) -> Bool {
        guard let first = bytes.first, ASCII.isLetter(first) || ASCII.isDigit(first), bytes.count <= 200 else {
            return false
        }
        var stem = 0
        var dot: String.UTF8View.Index?
        for index in bytes.indices {
            let byte = bytes[index]
            switch byte {
            case 0x2E:
                guard dot == nil else { return false }
                dot = index
            case 0x2D, 0x5F,
                _ where ASCII.isLetter(byte) || ASCII.isDigit(byte):
                if dot == nil { stem += 1 }
            default: return false
            }
        }
        // Device names have three or four characters; Towline's own extensions begin with `tow`.
        guard ASCII.isDigit(first) || stem != 3 && stem != 4 else { return false }
        guard let dot else { return true }
        let ending = bytes[bytes.index(after: dot)...]
        return !ending.isEmpty && !ending.prefix(3).elementsEqual("tow".utf8) { ASCII.lowercased($0) == $1 }
    }

    /// Returns the safe name that `Content-Disposition` suggests; `nil` without a usable one. A server cannot choose
    /// bytes that are not text.
    package static func suggested(by fields: HTTPFields) -> String? {
        ContentDisposition.fileName(fields).flatMap { make(ByteText.readable($0)) }
    }

    /// Returns the name that a URL gives: its last path component, made safe, or `download`.
    package static func ofURL(_ url: HTTPURL) -> String { known(byURL: url) ?? "download" }

    /// Returns the safe file name that a URL gives; `nil` if the URL has no usable name.
    private static func known(byURL url: HTTPURL) -> String? {
        url.lastPathComponent.flatMap { make(ByteText.readable($0), isOfURL: true) }
    }

    /// Returns the name that the URL at the end of a redirect gives, as with `wget --content-disposition`, but without
    /// the query. The `name` of the first URL stays if it is a file's name (`disk.iso`, not `latest` or `get.php`), or
    /// if the target has no usable name.
    package static func ofURL(_ target: HTTPURL, redirectedFrom url: HTTPURL, named name: String) -> String {
        target == url || WebPage.isPage(name: name) == false ? name : known(byURL: target) ?? name
    }

    /// Returns a notice for the user if the original name begins with a dot or a hyphen, which the safe name does not;
    /// otherwise `nil`.
    package static func notice(_ facts: ResponseFacts, from url: HTTPURL) -> TransferNotice? {
        let (suggestion, origin) = facts.suggestion.map { ($0, "server") } ?? (url.lastPathComponent, "URL")
        guard let suggestion, let first = suggestion.utf8.first, first == 0x2E || first == 0x2D else { return nil }
        return TransferNotice(
            .info, .disk,
            "the file is saved as \(facts.fileName) because \(suggestion), the name from the \(origin), begins with a"
                + " \(first == 0x2E ? "dot" : "hyphen"). To choose the name, use -o")
    }

    /// Returns whether a character is a control or line separator, is invisible, or changes the direction of text.
    private static func isInvisible(_ scalar: Unicode.Scalar) -> Bool {
        if ByteText.byte(scalar) != nil { return false }
        if scalar.isASCII { return ASCII.isControl(UInt8(truncatingIfNeeded: scalar.value)) }
        switch scalar.properties.generalCategory {
        case .control, .format, .lineSeparator, .paragraphSeparator, .surrogate: return true
        default: return scalar.properties.isDefaultIgnorableCodePoint || scalar.properties.isNoncharacterCodePoint
        }
    }

    /// Returns whether a character is U+200C or U+200D, which words in Persian and Hindi and many emoji need.
    private static func isJoiner(_ scalar: Unicode.Scalar) -> Bool { scalar == "\u{200C}" || scalar == "\u{200D}" }

    /// Returns the characters without joiners that are not between two characters that can join. Such a joiner is
    /// invisible, and two names that differ by it look the same.
    private static func withoutLooseJoiners(_ scalars: [Unicode.Scalar]) -> [Unicode.Scalar] {
        func joins(_ index: Int) -> Bool {
            scalars.indices.contains(index) && !scalars[index].isASCII && !isJoiner(scalars[index])
        }
        return scalars.indices.filter { !isJoiner(scalars[$0]) || joins($0 - 1) && joins($0 + 1) }.map { scalars[$0] }
    }

    /// Returns the characters of a suggested file name without dots, dashes and white space at the beginning (hidden
    /// files, options), and without dots and white space at the end (Windows drops them, so that two names become the
    /// same).
    private static func trimmed(_ scalars: [Unicode.Scalar]) -> [Unicode.Scalar] {
        let first = scalars.firstIndex { $0 != "." && $0 != "-" && !$0.properties.isWhitespace }
        guard let first else { return [] }
        let last = scalars.lastIndex { $0 != "." && !$0.properties.isWhitespace } ?? first
        return Array(scalars[first...last])
    }

    private static func isDriveLetter(_ scalars: [Unicode.Scalar]) -> Bool {
        guard scalars.count >= 2, scalars[1] == ":", scalars[0].isASCII else { return false }
        return ASCII.isLetter(UInt8(truncatingIfNeeded: scalars[0].value))
    }

    private static func isReserved(_ scalar: Unicode.Scalar, _ isOfURL: Bool) -> Bool {
        switch scalar {
        case "<", ">", "\"", "|": true
        case ":", "?", "*": !isOfURL
        default: false
        }
    }

    /// Returns whether Windows opens a device instead of a file for a name, regardless of the text after the first dot:
    /// `CON`, `nul.txt`, `COM1 .log`.
    private static func isDeviceName(_ name: String) -> Bool {
        var base = name.unicodeScalars.prefix { $0 != "." }
        while base.last?.properties.isWhitespace == true { base.removeLast() }
        let upper = String(base).uppercased()
        if ["CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$"].contains(upper) { return true }
        guard upper.hasPrefix("COM") || upper.hasPrefix("LPT"), upper.unicodeScalars.count == 4 else { return false }
        return upper.unicodeScalars.last.map { "0123456789¹²³".unicodeScalars.contains($0) } ?? false
    }

    /// Returns the length in bytes that a file name has on disk: an escaped byte (`ByteText`) counts as one.
    package static func byteCount(_ text: Substring) -> Int {
        text.utf8.allSatisfy { $0 < 0x80 } ? text.utf8.count : text.unicodeScalars.reduce(0) { $0 + width($1) }
    }

    /// Returns the length in bytes that a file name has on disk: an escaped byte (`ByteText`) counts as one.
    package static func byteCount(_ text: String) -> Int { byteCount(text[...]) }

    private static func width(_ scalar: Unicode.Scalar) -> Int { ByteText.byte(scalar) == nil ? UTF8.width(scalar) : 1 }

    /// Returns the name cut to `maximumByteCount` bytes, between two characters. An extension of up to 16 bytes stays.
    private static func shortened(_ name: String) -> String {
        guard name.utf8.count > maximumByteCount, byteCount(name) > maximumByteCount else { return name }
        var stem = name[...]
        var fileExtension = name[name.endIndex...]
        if let dot = name.utf8.lastIndex(of: 0x2E), byteCount(name[dot...]) <= 17 {
            stem = name[..<dot]
            fileExtension = name[dot...]
        }
        let room = maximumByteCount - byteCount(fileExtension)
        var kept = String(prefix(of: stem, byteCount: room))
        while let last = kept.unicodeScalars.last, last == "." || last.properties.isWhitespace {
            kept.unicodeScalars.removeLast()
        }
        return kept + fileExtension
    }

    /// Returns the longest prefix of a file name with whole characters that fits into `byteCount` bytes. If the first
    /// character does not fit, the prefix consists of as many of its scalars as fit.
    package static func prefix(of text: Substring, byteCount: Int) -> Substring {
        var end = text.startIndex
        var used = 0
        for index in text.indices {
            used += text[index].unicodeScalars.reduce(0) { $0 + width($1) }
            if used > byteCount { break }
            end = text.index(after: index)
        }
        guard end == text.startIndex else { return text[..<end] }
        used = 0
        for index in text.unicodeScalars.indices {
            used += width(text.unicodeScalars[index])
            if used > byteCount { break }
            end = text.unicodeScalars.index(after: index)
        }
        return text[..<end]
    }

    /// Replaces extensions of Towline: `x.tow` becomes `x_tow`. A server must not be able to name the part file,
    /// journal or `tow-bad` file of another download.
    private static func withoutOwnSuffix(_ name: String) -> String {
        var name = name
        // There may be another such extension before the first one.
        while let dot = name.utf8.lastIndex(of: 0x2E) {
            let fileExtension = ASCII.lowercased(name[dot...])
            guard fileExtension == ".tow" || fileExtension.hasPrefix(".tow-") else { break }
            name.unicodeScalars.replaceSubrange(dot...dot, with: CollectionOfOne("_"))
        }
        return name
    }
}
