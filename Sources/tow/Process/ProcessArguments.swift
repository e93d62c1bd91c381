import CTowline
import Glibc
import TowlineCore

enum ProcessArguments {
    /// The arguments, the program's name first, with every byte (`ByteText`). `CommandLine.arguments` repairs arguments
    /// that are not UTF-8, and its first use takes a tenth of a millisecond.
    static let words: [String] = {
        var count: Int32 = 0
        guard let start = towline_arguments(&count) else { return CommandLine.arguments }
        var words: [String] = []
        for index in 0..<Int(count) {
            guard let word = start[index] else { break }
            words.append(ByteText.decode(Array(UnsafeRawBufferPointer(start: word, count: strlen(word)))))
        }
        return words
    }()
}
