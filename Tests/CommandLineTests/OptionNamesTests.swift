import Testing
import TowlineCore

@testable import tow

/// The options of `tow` in messages of the library.
@Suite struct OptionNamesTests {
    @Test(arguments: Remedy.allCases) func anOptionFollowsEachRemedy(_ remedy: Remedy) {
        let message = OptionNames.add(to: "a.iso: no. \(remedy.sentence). Or \(remedy).")
        let words = message.split(separator: "(").dropFirst().map { $0.prefix { $0 != ")" } }
        #expect(words.count == 2 && words[0] == words[1] && words[0].hasPrefix("-"), "\(message)")
        #expect(message == "a.iso: no. \(remedy.sentence) (\(words[0])). Or \(remedy) (\(words[0])).")
    }

    @Test func errorsAndNoticesKeepTheirOtherValues() {
        let error = TowlineError(.refusedByServer, "a.iso: \(Remedy.login)", status: 401)
        let named = OptionNames.add(to: error)
        #expect(named.code == error.code && named.status == 401 && named.message.contains("--user"))
        let notice = OptionNames.add(to: TransferNotice(.warning, .unverified, "\(Remedy.checksum)"))
        #expect(notice.level == .warning && notice.kind == .unverified && notice.message.hasSuffix(" (--checksum)"))
        var snapshot = TransferSnapshot()
        snapshot.startsOverBecause = "to resume, \(Remedy.unsafeResume)"
        #expect(OptionNames.add(to: snapshot).startsOverBecause?.contains("--unsafe-resume") == true)
        #expect(OptionNames.add(to: "a.iso: not found") == "a.iso: not found")
    }
}
