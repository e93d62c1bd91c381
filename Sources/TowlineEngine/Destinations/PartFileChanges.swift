/// The changes of the part file since the transfer began, for progress reports and for the end of the transfer.
struct PartFileChanges {
    /// `true` if this transfer created the part file, so that it removes the file if no byte arrives.
    var isNew = false
    /// The number of part files that were replaced by new ones because the download had to start over.
    var replacements = 0
    /// The path of a complete file with a wrong checksum that was kept under another name; `nil` without one.
    var badPath: String?
    /// `true` if the URL of the part file may be that of another file (`LinkRelation`). Its bytes and its journal
    /// then stay if the server shows another file.
    var isGuess = false
    /// The locations of part files that proved to be of other files.
    var otherParts: [Place] = []
}
