import CTowline

/// The words that the process was started with.
enum ProcessArguments {
    /// All of them, the program's name first: what `CommandLine.arguments` is as well, which is made of generic pieces that are
    /// put together when they are first used, at a tenth of a millisecond.
    static let words: [String] = {
        var count: Int32 = 0
        guard let start = towline_arguments(&count) else { return CommandLine.arguments }
        var words: [String] = []
        for index in 0..<Int(count) {
            guard let word = start[index] else { break }
            words.append(String(cString: word))
        }
        return words
    }()
}
