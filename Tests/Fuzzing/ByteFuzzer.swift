#if canImport(Glibc)
    import Glibc
#else
    import Darwin
#endif

/// Settings of the fuzz tests, from the environment.
package enum FuzzSettings {
    /// `TOWLINE_FUZZ_RUNS`: the number of inputs for each parser, 20,000 by default.
    package static let runs = number(named: "TOWLINE_FUZZ_RUNS") ?? 20_000
    /// `TOWLINE_FUZZ_SEED`: the same seed gives the same inputs.
    package static let seed = number(named: "TOWLINE_FUZZ_SEED") ?? 20_260_101
    /// `TOWLINE_FUZZ_TRACE=1`: prints each input before use. After a trap, the last line is the input that caused it.
    package static let prints = getenv("TOWLINE_FUZZ_TRACE") != nil
    /// `TOWLINE_TORTURE=1`: runs the long form of tests whose inputs are databases or connections.
    package static let isLong = getenv("TOWLINE_TORTURE") != nil

    private static func number(named name: String) -> Int? {
        getenv(name).flatMap { Int(String(cString: $0)) }
    }
}

/// Makes inputs that are almost valid: valid texts with a few mutations that know the grammar.
package struct ByteFuzzer {
    private let name: String
    private let seeds: [[UInt8]]
    private let fragments: [[UInt8]]

    /// Fragments that every parser must survive.
    private static let hostileWords = [
        "\r\n", "\u{0}", "\u{1B}", "\u{7F}", "\u{9B}", "\t", " ", "\"", "\\", "\\\"", "%", "%00", "%0d%0a", "%2e%2e%2f",
        "%zz",
        "9223372036854775807", "9223372036854775808", "18446744073709551616", "-1", "+", "0", "00", "é", "e\u{301}",
        "日本",
        "\u{202E}", "\u{200B}", "\u{FFFD}", "\u{1F1E9}\u{1F1EA}", "👨‍👩‍👧", ",", ";", "=", "'", "''", ":", "/", "//", "..",
        ".", "*", "@", "#",
        "?", "<", ">", "[", "]",
    ]

    /// Makes a fuzzer.
    ///
    /// - Parameter name: The name in failures.
    ///   - corpus: Valid texts, and texts that are almost valid.
    ///   - words: Fragments that mean something in the grammar.
    package init(name: String, corpus: [String], words: [String]) {
        self.name = name
        seeds = corpus.map { Array($0.utf8) }
        fragments = (words + words + Self.hostileWords).map { Array($0.utf8) }
    }

    /// Runs `violation` on each input; it returns a description of a violated property, or `nil`.
    ///
    /// - Returns: The first violation, with the seed, the run and the input.
    package func firstViolation(
        runs: Int = FuzzSettings.runs, _ violation: ([UInt8], inout Generator) -> String?
    ) -> String? {
        var generator = Generator(seed: UInt64(truncatingIfNeeded: FuzzSettings.seed))
        let start = ContinuousClock.now
        for run in 0..<runs {
            let bytes = input(&generator)
            if FuzzSettings.prints { print("\(name) \(run): \(Self.shown(bytes))") }
            if let problem = violation(bytes, &generator) {
                return "\(name), seed \(FuzzSettings.seed), run \(run): \(problem): \(Self.shown(bytes))"
            }
        }
        print("fuzz: \(name): \(runs) runs in \(start.duration(to: .now))")
        return nil
    }

    private static func shown(_ bytes: [UInt8]) -> String {
        String(decoding: bytes, as: UTF8.self).debugDescription
    }

    private func input(_ generator: inout Generator) -> [UInt8] {
        var bytes = seeds[generator.below(seeds.count)]
        // One input in eight stays as it is, so that the valid paths run as well.
        for _ in 0..<(generator.below(8) == 0 ? 0 : generator.below(4) + 1) { mutate(&bytes, &generator) }
        return bytes
    }

    private func mutate(_ bytes: inout [UInt8], _ generator: inout Generator) {
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
}

/// SplitMix64: small, fast, and the same on every machine.
package struct Generator: RandomNumberGenerator, Sendable {
    private var state: UInt64

    /// Makes a generator; equal seeds give equal numbers.
    package init(seed: UInt64) { state = seed }

    /// Returns the next 64 bits.
    package mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }

    /// Returns a number from 0 up to, not including, `bound`.
    package mutating func below(_ bound: Int) -> Int {
        Int(truncatingIfNeeded: next().multipliedFullWidth(by: UInt64(bound)).high)
    }

    /// Returns one of the values.
    package mutating func one<Value>(of values: [Value]) -> Value { values[below(values.count)] }

    /// Returns up to `count` random bytes.
    package mutating func bytes(upTo count: Int) -> [UInt8] {
        (0..<below(count + 1)).map { _ in UInt8(truncatingIfNeeded: next()) }
    }
}
