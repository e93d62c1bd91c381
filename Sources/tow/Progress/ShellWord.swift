/// Quotes the words of a command for a POSIX shell.
enum ShellWord {
    /// Returns the text as one word of a command, quoted if the shell would change it.
    static func quoted(_ text: String) -> String {
        let isPlain = text.utf8.allSatisfy { byte in
            switch byte {
            case 0x30...0x39, 0x41...0x5A, 0x61...0x7A: true
            // % + , - . / : @ _
            case 0x25, 0x2B...0x2F, 0x3A, 0x40, 0x5F: true
            default: false
            }
        }
        if isPlain, !text.isEmpty { return text }
        return "'" + text.replacing("'", with: "'\\''") + "'"
    }
}
