import FaultServer
import Testing
import TowlineCore
import TowlineEngine

/// The file changes on the server at any moment, over answers that break at any byte: whatever proof the server gives,
/// the published file is one version's, from its first byte to its last (catalogue rows 19, 21, 28–34).
@Suite(.serialized, .timeLimit(.minutes(4)))
struct ContentChangeTests {
    struct Setting: Sendable, CustomTestStringConvertible {
        let naming: RepresentationFaultTests.Naming
        let isLonger: Bool
        let connections: Int

        var testDescription: String { "\(naming.rawValue), \(isLonger ? "other" : "equal") length, x\(connections)" }

        static let all: [Setting] = [.strong, .weak, .strongDate, .weakDate, .nothing].flatMap { naming in
            [false, true].flatMap { isLonger in
                [1, 4].map { Setting(naming: naming, isLonger: isLonger, connections: $0) }
            }
        }
    }

    static let rounds = Thoroughness.isTorture ? 100 : 25

    @Test(arguments: Setting.all) func anyMoment(_ setting: Setting) async throws {
        var generator = SplitMix(seed: setting.testDescription.utf8.reduce(7) { $0 &* 31 &+ UInt64($1) })
        var changed = 0
        for round in 0..<Self.rounds {
            let seed = generator.next()
            changed += try await play(setting, seed: seed, survivesRun: round % 3 == 0) ? 1 : 0
        }
        // The test is meaningful only if the change happens midway often enough.
        #expect(changed >= Self.rounds / 3, "\(changed) of \(Self.rounds) ended in the new version")
    }

    /// Downloads over a change of the file. Returns whether the published file is the new version.
    private func play(_ setting: Setting, seed: UInt64, survivesRun: Bool) async throws -> Bool {
        var generator = SplitMix(seed: seed)
        let length = Int64.random(in: 1_100_000...2_000_000, using: &generator)
        let old = setting.naming.version(seed: 1, length: length)
        let growth = setting.isLonger ? Int64.random(in: 1...300_000, using: &generator) : 0
        let new = setting.naming.version(seed: 2, length: length + growth)
        let moment = Int64.random(in: 0..<length, using: &generator)
        let cuts = (0..<8).map { _ in Int64.random(in: 1...700_000, using: &generator) }
        let resets = Bool.random(using: &generator)
        let behaviour = Behaviour { context in
            // The first answers break; without any proof only an unbroken one can succeed.
            guard context.request.index < cuts.count else { return context.correct }
            let cut = cuts[context.request.index]
            return Reply(
                context.correct.steps.flatMap { step -> [Reply.Step] in
                    guard case .content(let content, let range) = step else { return [step] }
                    let end = min(range.upperBound, range.lowerBound + cut)
                    return [.content(content, range.lowerBound..<end), resets ? .reset : .close]
                })
        }
        let resource = Resource(old, behaviour: behaviour, switches: [ContentSwitch(.afterBodyBytes(moment), to: new)])
        return try await Site.with(try await Site(resource)) { site in
            let options = try site.options {
                $0.connections = setting.connections
                $0.retryWait = .milliseconds(2)
                $0.confirmationWait = .milliseconds(2)
                $0.durable = false
            }
            if survivesRun {
                let download = Download(options)
                let watcher = Task {
                    await site.server.log.wait { $0.requests.count >= 2 }
                    download.stop()
                }
                let outcome = await download.run()
                watcher.cancel()
                try site.law(outcome, versions: [old, new])
                if outcome.succeeded { return try site.published([new]) != nil }
            }
            let outcome = await Download(options).run()
            let version = try site.law(outcome, versions: [old, new])
            let allowed: [TowlineError.Code] = [.transient, .changedOnServer, .invalidResponse]
            #expect(outcome.code.map(allowed.contains) ?? true, "seed \(seed): \(outcome.result)")
            if !outcome.succeeded {
                site.server.set(.correct, for: Site.path)
                let last = await Download(options).run()
                #expect(last.succeeded, "seed \(seed): \(last.result)")
                try site.law(last, versions: [old, new])
            }
            return version == new || !outcome.succeeded
        }
    }
}

/// SplitMix64: numbers that a seed determines.
struct SplitMix: RandomNumberGenerator {
    private var state: UInt64

    init(seed: UInt64) { state = seed }

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }
}
