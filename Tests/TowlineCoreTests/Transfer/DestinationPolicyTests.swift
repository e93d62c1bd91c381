import Testing
import TowlineCore

/// Every combination of an existing file, the user's choice and a checksum.
@Suite("Existing files") struct DestinationPolicyTests {
    typealias Step = DestinationPolicy.Step
    typealias Occupant = DestinationPolicy.Occupant

    private func step(
        _ occupant: Occupant, _ existing: ExistingPolicy, checksum: Bool = false, isRefuted: Bool = false,
        isUsersName: Bool = true
    ) -> Step {
        DestinationPolicy(existing: existing, hasChecksum: checksum, isUsersName: isUsersName)
            .step(for: occupant, isRefuted: isRefuted)
    }

    @Test(
        "a name that the server chose replaces only a finished download of this URL",
        arguments: [false, true], [false, true])
    func serversName(_ checksum: Bool, _ isRefuted: Bool) {
        let others: [Occupant] = [
            .finished(isThis: false), .other(isFile: true), .other(isFile: false), .unfinished(isOurs: false),
            .unfinished(isOurs: true),
        ]
        for existing in ExistingPolicy.allCases {
            func step(_ occupant: Occupant, _ existing: ExistingPolicy, _ isUsersName: Bool) -> Step {
                self.step(
                    occupant, existing, checksum: checksum, isRefuted: isRefuted, isUsersName: isUsersName)
            }
            for occupant in others {
                let expected = step(occupant, existing.replaces ? .fail : existing, true)
                #expect(step(occupant, existing, false) == expected, "\(existing) \(occupant)")
            }
            let own = Occupant.finished(isThis: true)
            #expect(step(own, existing, false) == step(own, existing, true), "\(existing)")
        }
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
