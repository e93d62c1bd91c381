extension SafeFileName {
    /// `NAME (1).ext` for a name that is taken. The extension stays at the end so that programs still know the file.
    package static func numbered(_ name: String, _ number: Int) -> String {
        let suffix = " (\(number))"
        guard let dot = name.lastIndex(of: "."), dot != name.startIndex else { return name + suffix }
        return name[..<dot] + suffix + name[dot...]
    }
}
