import Testing
import TowlineCore

/// Every combination of an existing file, the user's choice and a checksum.
@Suite("Existing files") struct DestinationPolicyTests {
    typealias Step = DestinationPolicy.Step
    typealias Occupant = DestinationPolicy.Occupant

    private func step(
        _ occupant: Occupant, _ existing: ExistingPolicy, checksum: Bool = false, isRefuted: Bool = false
    ) -> Step {
        DestinationPolicy(existing: existing, hasChecksum: checksum).step(for: occupant, isRefuted: isRefuted)
    }

    @Test(
        "an unfinished download of this URL is resumed, unless a file that must stay has the name",
        arguments: [false, true])
    func ownPart(_ checksum: Bool) {
        for existing in ExistingPolicy.allCases {
            let expected: Step = existing == .fail || existing == .skip ? .resumeIfNameIsFree : .resume
            #expect(step(.unfinished(isOurs: true), existing, checksum: checksum) == expected)
        }
    }

    @Test("an unfinished download of another URL is replaced only if the user says so", arguments: [false, true])
    func otherPart(_ checksum: Bool) {
        for existing in ExistingPolicy.allCases {
            let expected: Step = existing == .overwrite ? .replaceUnfinished : .refuse
            #expect(step(.unfinished(isOurs: false), existing, checksum: checksum) == expected)
        }
    }

    @Test(
        "a finished download of this URL",
        arguments: [
            (.skip, .keep, .prove(isKnown: true)), (.fail, .keep, .prove(isKnown: true)),
            (.overwrite, .download, .download), (.rename, .keep, .prove(isKnown: true)),
            (.update, .compare, .prove(isKnown: true)),
        ] as [(ExistingPolicy, Step, Step)])
    func finished(_ existing: ExistingPolicy, _ plain: Step, _ withChecksum: Step) {
        #expect(step(.finished(isThis: true), existing) == plain)
        #expect(step(.finished(isThis: true), existing, checksum: true) == withChecksum)
    }

    @Test(
        "a file of another URL, or of no download",
        arguments: [
            (.skip, .skip, .skip), (.fail, .refuse, .prove(isKnown: false)), (.overwrite, .download, .download),
            (.rename, .findNumbered(elseProve: false), .findNumbered(elseProve: true)),
            (.update, .compare, .prove(isKnown: false)),
        ] as [(ExistingPolicy, Step, Step)])
    func other(_ existing: ExistingPolicy, _ plain: Step, _ withChecksum: Step) {
        for occupant in [.finished(isThis: false), .other(isFile: true)] as [Occupant] {
            #expect(step(occupant, existing) == plain)
            #expect(step(occupant, existing, checksum: true) == withChecksum)
        }
    }

    @Test("a directory, a pipe or a device is never read", arguments: [false, true])
    func unreadable(_ checksum: Bool) {
        let expected: [(ExistingPolicy, Step)] = [
            (.skip, .skip), (.fail, .refuse), (.overwrite, .download), (.update, .download),
            (.rename, .findNumbered(elseProve: false)),
        ]
        for (existing, expected) in expected {
            #expect(step(.other(isFile: false), existing, checksum: checksum) == expected)
        }
    }

    @Test("a file with another checksum is not read twice, and is replaced only if the user allows that")
    func refuted() {
        for occupant in [.finished(isThis: true), .finished(isThis: false), .other(isFile: true)] as [Occupant] {
            for existing in ExistingPolicy.allCases {
                let step = step(occupant, existing, checksum: true, isRefuted: true)
                #expect((step == .download) == existing.replaces)
                if case .prove = step { Issue.record("\(occupant) \(existing)") }
            }
        }
    }
}
