import Fuzzing
import Testing

/// The generator of all seeded tests of this target.
typealias Generator = Fuzzing.Generator

/// Feeds a parser with texts from `ByteFuzzer`, which explains the settings.
struct Fuzzer {
    let name: String
    /// Valid texts, and texts that are almost valid.
    let corpus: [String]
    /// Fragments that mean something in the grammar.
    let words: [String]

    static let runs = FuzzSettings.runs
    static let seed = FuzzSettings.seed

    /// Runs `violation` on each text; it returns a description of a violated property, or `nil`. Stops at the first
    /// violation.
    func run(_ violation: (String, inout Generator) -> String?) {
        let problem = ByteFuzzer(name: name, corpus: corpus, words: words).firstViolation { bytes, generator in
            violation(String(decoding: bytes, as: UTF8.self), &generator)
        }
        if let problem { Issue.record(Comment(rawValue: problem)) }
    }
}
