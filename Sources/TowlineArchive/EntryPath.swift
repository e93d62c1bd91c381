internal import TowlineCore

/// The place of an entry below the directory that is unpacked into.
///
/// Names are hostile: zip-slip is `../` in one of them (CVE-2018-1002200 and its many relatives). What leads out is
/// refused, not bent: such an archive was made to. What is only awkward is made safe.
struct EntryPath {
    /// Safe names, the last one the entry's own. Empty for the directory itself.
    let components: [String]

    var text: String { components.joined(separator: "/") }

    /// Whether two paths are one for the file system, which compares bytes. Swift takes texts that only look alike,
    /// such as "é" in one code point or in two, for equal.
    static func isSame(_ left: some Sequence<String>, _ right: some Sequence<String>) -> Bool {
        left.elementsEqual(right) { $0.utf8.elementsEqual($1.utf8) }
    }

    /// Why a name is refused.
    struct Refusal: Error, Hashable {
        let reason: String
    }

    /// - Parameter bytes: the path as the archive gives it, without the closing NUL.
    init(_ bytes: some Collection<UInt8>, maximumDepth: Int) throws(Refusal) {
        let shown = TerminalSafeText.make(String(decoding: bytes.prefix(300), as: UTF8.self), width: 120)
        // Windows takes both for separators; what leads out there is not let in here.
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

    /// 255 bytes is what file systems allow (`NAME_MAX`).
    private static let maximumByteCount = 255

    /// One plain name. Bytes that are no UTF-8 are read as ISO 8859-1, so that different names stay different.
    private static func safe(_ bytes: some Collection<UInt8>) -> String {
        var name =
            String(validating: bytes, as: UTF8.self) ?? String(String.UnicodeScalarView(bytes.map(Unicode.Scalar.init)))
        if name.unicodeScalars.contains(where: isAwkward) {
            name = String(String.UnicodeScalarView(name.unicodeScalars.map { isAwkward($0) ? "_" : $0 }))
        }
        return shortened(name)
    }

    /// Controls, the backslash, and what turns the direction of the text that follows.
    private static func isAwkward(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.value {
        case 0..<0x20, 0x7F..<0xA0, 0x5C, 0x2028...0x202E, 0x2066...0x2069: true
        default: false
        }
    }

    /// The stem is cut between two scalars; an extension of up to 16 bytes stays.
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

    /// The text of a symbolic link at this place, if it cannot lead out of the directory.
    ///
    /// Only steps up at its very beginning are allowed, and no more than the link is deep: the directories above a
    /// link are real ones, so these are what they seem. A `..` behind a name may start from wherever another link
    /// leads. From there it goes down only, through links of which the same is true.
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
