internal import TowlineCore

/// The path of an entry, relative to the destination directory.
///
/// Names are not trusted: zip-slip is `../` in a name (CVE-2018-1002200 and many others). A path out of the directory
/// is refused, not corrected, because it is a sign of an attack. Unusual characters are replaced.
struct EntryPath {
    /// The safe names of the directories and, last, of the entry. Empty for the destination directory.
    let components: [String]

    var text: String { components.joined(separator: "/") }

    /// Returns whether two paths are equal byte for byte, as file systems compare them. Swift also compares canonically
    /// equivalent texts as equal, such as "é" in one code point or in two.
    static func isSame(_ left: some Sequence<String>, _ right: some Sequence<String>) -> Bool {
        left.elementsEqual(right) { $0.utf8.elementsEqual($1.utf8) }
    }

    /// The error for a path that is refused, with the reason as a message.
    struct Refusal: Error, Hashable {
        let reason: String
    }

    /// Creates a safe path from the path in an archive, which `bytes` contains without the final NUL.
    init(_ bytes: some Collection<UInt8>, maximumDepth: Int) throws(Refusal) {
        let shown = TerminalSafeText.make(String(decoding: bytes.prefix(300), as: UTF8.self), width: 120)
        // Windows accepts both separators. A path that leaves the directory on Windows is refused here too.
        let strict = bytes.split(omittingEmptySubsequences: true) { $0 == 0x2F || $0 == 0x5C }
        guard let first = bytes.first else {
            throw Refusal(
                reason: "the downloaded archive was not unpacked because it contains a file without a name. "
                    + "Unpack it with another program")
        }
        guard first != 0x2F, first != 0x5C else {
            throw Refusal(
                reason: "the downloaded archive was not unpacked because it contains the absolute path \"\(shown)\","
                    + " which is not safe. If you trust the archive, unpack it with another program")
        }
        guard !strict.contains(where: { $0.elementsEqual("..".utf8) }) else {
            throw Refusal(
                reason: "the downloaded archive was not unpacked because its file \"\(shown)\" would be written "
                    + "outside the destination directory. If you trust the archive, unpack it with another program")
        }
        if let head = strict.first(where: { !$0.elementsEqual(".".utf8) }), let letter = head.first,
            ASCII.isLetter(letter), head.dropFirst().first == 0x3A
        {
            throw Refusal(
                reason: "the downloaded archive was not unpacked because it contains the path \"\(shown)\" with a "
                    + "drive letter, which is not safe. If you trust the archive, unpack it with another program")
        }
        var components: [String] = []
        for component in bytes.split(separator: 0x2F) where !component.elementsEqual(".".utf8) {
            components.append(Self.safe(component))
        }
        guard components.count <= maximumDepth else {
            throw Refusal(
                reason: "the downloaded archive was not unpacked because its file \"\(shown)\" is more than "
                    + "\(maximumDepth) directories deep (the limit). Unpack it with another program")
        }
        self.components = components
    }

    // MARK: Names

    /// The maximum length of a name in bytes on common file systems (`NAME_MAX`).
    private static let maximumByteCount = 255

    /// Returns a safe name. Bytes that are not UTF-8 are read as ISO 8859-1, so that different names stay different.
    private static func safe(_ bytes: some Collection<UInt8>) -> String {
        var name =
            String(validating: bytes, as: UTF8.self) ?? String(String.UnicodeScalarView(bytes.map(Unicode.Scalar.init)))
        if name.unicodeScalars.contains(where: isAwkward) {
            name = String(String.UnicodeScalarView(name.unicodeScalars.map { isAwkward($0) ? "_" : $0 }))
        }
        return shortened(name)
    }

    /// Returns whether a character is replaced: controls, the backslash, and controls of the text direction.
    private static func isAwkward(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.value {
        case 0..<0x20, 0x7F..<0xA0, 0x5C, 0x2028...0x202E, 0x2066...0x2069: true
        default: false
        }
    }

    /// Shortens a name to 255 bytes. Cuts the stem between two scalars, and keeps an extension of up to 16 bytes.
    private static func shortened(_ name: String) -> String {
        guard name.utf8.count > maximumByteCount else { return name }
        var ending = name[name.endIndex...]
        if let dot = name.utf8.lastIndex(of: 0x2E), name[dot...].utf8.count <= 17 { ending = name[dot...] }
        var stem = String.UnicodeScalarView()
        var room = maximumByteCount - ending.utf8.count
        for scalar in name.unicodeScalars {
            room -= UTF8.width(scalar)
            if room < 0 { break }
            stem.append(scalar)
        }
        return String(stem) + ending
    }

    // MARK: Links

    /// Returns the target of a symbolic link at this path. Throws if the target could be outside the directory.
    ///
    /// `..` is allowed only at the beginning of the target, and at most as often as the link has parent directories:
    /// these parents are real directories. A `..` after a name is refused, because the name may be a link to another
    /// directory. The rest of the target only descends, through links that obey the same rule.
    func linkTarget(_ bytes: some Collection<UInt8>) throws(Refusal) -> String {
        let shown = TerminalSafeText.make(String(decoding: bytes.prefix(300), as: UTF8.self), width: 120)
        let link = TerminalSafeText.make(text, width: 120)
        let refusal = Refusal(
            reason: """
                the downloaded archive was not unpacked because its link "\(link)" points to "\(shown)", which is \
                not a safe path inside the archive. If you trust the archive, unpack it with another program
                """)
        guard let target = String(validating: bytes, as: UTF8.self), !target.isEmpty, target.utf8.first != 0x2F,
            bytes.count < 4096, !target.unicodeScalars.contains(where: Self.isAwkward)
        else { throw refusal }
        var room = components.count - 1
        var mayRise = true
        for step in target.utf8.split(separator: 0x2F) where !step.elementsEqual(".".utf8) {
            guard step.elementsEqual("..".utf8) else {
                mayRise = false
                continue
            }
            room -= 1
            guard mayRise, room >= 0 else { throw refusal }
        }
        return target
    }
}
