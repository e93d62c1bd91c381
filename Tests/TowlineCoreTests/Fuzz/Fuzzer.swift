import Testing
import TowlineCore

#if canImport(Glibc)
    import Glibc
#else
    import Darwin
#endif

/// Feeds a parser with texts that are nearly right: valid ones with a few mutations that know the grammar.
///
/// The same seed gives the same texts. In the environment: `TOWLINE_FUZZ_RUNS` (texts per parser, 20,000 unless told),
/// `TOWLINE_FUZZ_SEED`, and `TOWLINE_FUZZ_TRACE=1`, which prints every text before it is used: after a trap the last
/// line is the culprit.
struct Fuzzer {
    let name: String
    /// Valid texts, and near misses worth starting from.
    let corpus: [String]
    /// Fragments the grammar cares for.
    let words: [String]

    static let runs = number(named: "TOWLINE_FUZZ_RUNS") ?? 20_000
    static let seed = number(named: "TOWLINE_FUZZ_SEED") ?? 20_260_101

    /// Fragments every parser has to survive.
    private static let hostileWords = [
        "\r\n", "\u{0}", "\u{1B}", "\u{7F}", "\u{9B}", "\t", " ", "\"", "\\", "\\\"", "%", "%00", "%0d%0a", "%2e%2e%2f",
        "%zz",
        "9223372036854775807", "9223372036854775808", "18446744073709551616", "-1", "+", "0", "00", "é", "e\u{301}",
        "日本",
        "\u{202E}", "\u{200B}", "\u{FFFD}", "\u{1F1E9}\u{1F1EA}", "👨‍👩‍👧", ",", ";", "=", "'", "''", ":", "/", "//", "..",
        ".", "*", "@", "#",
        "?", "<", ">", "[", "]",
    ]

    /// Runs `violation` on every text; it returns what is wrong, or `nil`. Stops at the first violation.
    func run(_ violation: (String, inout Generator) -> String?) {
        var generator = Generator(seed: UInt64(truncatingIfNeeded: Self.seed))
        let seeds = corpus.map { Array($0.utf8) }
        let fragments = (words + words + Self.hostileWords).map { Array($0.utf8) }
        let start = ContinuousClock.now
        let traces = getenv("TOWLINE_FUZZ_TRACE") != nil
        for run in 0..<Self.runs {
            let text = Self.text(seeds, fragments, &generator)
            if traces { print("\(name) \(run): \(text.debugDescription)") }
            if let problem = violation(text, &generator) {
                Issue.record("\(name), seed \(Self.seed), run \(run): \(problem): \(text.debugDescription)")
                return
            }
        }
        print("fuzz: \(name): \(Self.runs) runs in \(start.duration(to: .now))")
    }

    private static func text(_ seeds: [[UInt8]], _ fragments: [[UInt8]], _ generator: inout Generator) -> String {
        var bytes = seeds[generator.below(seeds.count)]
        // One text in eight stays as it is, so that the valid paths are walked as well.
        for _ in 0..<(generator.below(8) == 0 ? 0 : generator.below(4) + 1) {
            mutate(&bytes, seeds, fragments, &generator)
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    private static func mutate(
        _ bytes: inout [UInt8], _ seeds: [[UInt8]], _ fragments: [[UInt8]], _ generator: inout Generator
    ) {
        let position = generator.below(bytes.count + 1)
        let end = min(bytes.count, position + generator.below(8))
        switch generator.below(8) {
        case 0: bytes.replaceSubrange(position..<end, with: [])
        case 1: bytes.insert(contentsOf: bytes[position..<end], at: position)
        case 2: bytes.insert(UInt8(truncatingIfNeeded: generator.next()), at: position)
        case 3: if position < bytes.count { bytes[position] ^= 1 << UInt8(generator.below(8)) }
        case 4: bytes.replaceSubrange(position..<end, with: fragments[generator.below(fragments.count)])
        case 5:
            let other = seeds[generator.below(seeds.count)]
            bytes.replaceSubrange(position..., with: other[generator.below(other.count + 1)...])
        default: bytes.insert(contentsOf: fragments[generator.below(fragments.count)], at: position)
        }
    }

    private static func number(named name: String) -> Int? {
        getenv(name).flatMap { Int(String(cString: $0)) }
    }
}

/// SplitMix64: small, fast, and the same on every machine.
struct Generator: RandomNumberGenerator {
    private var state: UInt64

    init(seed: UInt64) { state = seed }

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }

    /// A number from 0 up to, not including, `bound`.
    mutating func below(_ bound: Int) -> Int {
        Int(truncatingIfNeeded: next().multipliedFullWidth(by: UInt64(bound)).high)
    }
}
