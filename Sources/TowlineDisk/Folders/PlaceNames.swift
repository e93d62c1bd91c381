internal import TowlineCore

/// The names that the files of one download have in its directory: the complete file, the part file, the journal, and
/// temporary files.
struct PlaceNames: Sendable {
    /// The final name of the download's file, which only the complete file gets.
    let final: String
    /// The common prefix of the names of an unfinished download's files, which end with suffixes such as `.tow`: the
    /// final name, abbreviated if it would be too long with a suffix.
    let stem: String
    /// `true` if `part` and `journal` are those of the earlier part file.
    private(set) var isEarlier = false

    init(final: String) {
        self.final = final
        stem = Self.stem(of: final)
    }

    /// The name of the part file, `NAME.tow`, which contains the incomplete bytes.
    var part: String { stem + (isEarlier ? ".tow-old" : ".tow") }
    /// The name of the journal, which records the downloaded bytes of the part file.
    var journal: String { part + "-journal" }
    /// The name of a new journal until it is filled and renamed to `journal`, so that `journal` is never incomplete.
    var newJournal: String { stem + ".tow-journal-new" }
    /// The temporary name of a new part file that is about to replace the present one, because the file changed on the
    /// server.
    var nextPart: String { stem + ".tow-next" }
    /// The names of the earlier part file, `NAME.tow-old`, and its journal. It has the bytes of the version that the
    /// present part file replaced.
    var earlier: PlaceNames {
        var names = self
        names.isEarlier = true
        return names
    }
    /// The name, `NAME.tow-bad`, of a complete file with a wrong checksum, which is kept for the user.
    var bad: String { stem + ".tow-bad" }
    /// The temporary name for a file that has the part file's name but does not belong to the download.
    var aside: String { stem + ".tow-aside" }
    /// The temporary name for a damaged journal or another file that has the journal's name.
    var journalAside: String { stem + ".tow-journal-aside" }

    /// Returns these names, or those of the earlier part file if only its files exist: after a crash, until the
    /// download continues.
    func existing(in folder: Folder) throws(TowlineError) -> PlaceNames {
        for name in [journal, part] where try folder.status(of: name) != nil { return self }
        for name in [earlier.journal, earlier.part] where try folder.status(of: name) == nil { return self }
        return earlier
    }

    /// Returns the final name with a number before its last extension, `NAME (1).ext`; without a number for 0. Used if
    /// the final name is taken.
    func numbered(_ number: Int) -> String { number > 0 ? SafeFileName.numbered(final, number) : final }

    /// Returns the prefix (`stem`) for the part file and journal of a final name. A long name is abbreviated to its
    /// first characters, `~` and a checksum of the whole name, so that different names have different part files.
    private static func stem(of name: String) -> String {
        guard name.utf8.count > SafeFileName.maximumByteCount,
            SafeFileName.byteCount(name) > SafeFileName.maximumByteCount
        else { return name }
        let sum = String(CRC32C.checksum(ByteText.encode(name)), radix: 16)
        let mark = "~" + String(repeating: "0", count: max(0, 8 - sum.count)) + sum
        return SafeFileName.prefix(of: name[...], byteCount: abbreviatedCount - mark.utf8.count) + mark
    }

    /// The length of an abbreviated stem in bytes, with room for `-aside` and a number after the longest suffix.
    private static let abbreviatedCount = SafeFileName.maximumByteCount - 12

    /// Returns whether a stem may be an abbreviation. The final name of the download is then unknown.
    static func isAbbreviated(_ stem: String) -> Bool {
        let bytes = stem.utf8
        return bytes.count > 100 && bytes.suffix(9).first == 0x7E
            && bytes.suffix(8).allSatisfy { ASCII.hexadecimalValue($0) != nil }
    }
}
