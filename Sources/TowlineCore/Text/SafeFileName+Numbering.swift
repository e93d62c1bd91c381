extension SafeFileName {
    /// Returns a substitute for a file name that is taken: `NAME (1).ext` for the number 1, shortened to 255 bytes. The
    /// extension stays at the end, so that programs recognize the file.
    package static func numbered(_ name: String, _ number: Int) -> String {
        let suffix = " (\(number))"
        let dot = name.lastIndex(of: ".").flatMap { $0 == name.startIndex ? nil : $0 } ?? name.endIndex
        let (stem, end) = (name[..<dot], suffix + name[dot...])
        let room = longestByteCount - byteCount(end)
        return (byteCount(stem) > room && room > 0 ? prefix(of: stem, byteCount: room) : stem) + end
    }
}
