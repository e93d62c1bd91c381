import Foundation
import Testing
import TowlineCore
import TowlineEngine

@testable import Towline

/// The changes of the registry after each follow-up.
@Suite struct FollowUpSequenceTests {
    private static let steps: [FollowUp] = [
        .move(to: URL(fileURLWithPath: "/b/y")), .run(program: URL(fileURLWithPath: "/bin/true"), arguments: []),
    ]

    private static func record(_ state: RegisteredState, _ code: String?) throws -> RegisteredDownload {
        var request = DownloadRequest(
            from: try #require(URL(string: "http://a.example/x")), to: .file(URL(fileURLWithPath: "/a/x")))
        request.followUps = steps
        var record = RegisteredDownload(
            id: DownloadID(milliseconds: 1, random: (0, 1)), source: "http://a.example/x", host: "http://a.example:80",
            directory: "/a", name: "x", identity: "x", options: try StoredRequest.encode(request), state: state,
            addedAt: 1)
        record.reasonCode = code
        record.endedAt = 2
        return record
    }

    @Test func aMovedFileHasItsNewPathInTheNextStep() throws {
        var sequence = try #require(FollowUpSequence(try Self.record(.finished, "next 0")))
        #expect(sequence.next == Self.steps[0])
        let first = sequence.complete(movedTo: "/b/y")
        #expect(first.state?.reasonCode == "next 1" && first.state?.endedAt == 2)
        #expect(first.directory == "/b" && first.name == "y" && first.onlyFrom == .finished)
        #expect(sequence.next == Self.steps[1] && sequence.file.path == "/b/y")
        let last = sequence.complete(movedTo: nil)
        #expect(last.state?.reasonCode == "done" && last.directory == nil)
        #expect(sequence.next == nil)
    }

    @Test func aFailureEndsTheSequence() throws {
        var sequence = try #require(FollowUpSequence(try Self.record(.finished, "next 1")))
        let change = sequence.fail(TowlineError(.commandFailed, "the program failed"))
        #expect(change.state?.reasonCode == "failed 1" && change.state?.reason == "the program failed")
        #expect(change.state?.state == .followUpFailed)
        #expect(change.onlyFrom == .finished && change.entries.map(\.kind) == ["follow-up-failed"])
        #expect(sequence.next == nil)
    }

    @Test(
        arguments: [(.finished, nil), (.finished, "done"), (.finished, "failed 0"), (.queued, "next 0")]
            as [(RegisteredState, String?)])
    func nothingIsLeftToDo(_ state: RegisteredState, _ code: String?) throws {
        #expect(try FollowUpSequence(Self.record(state, code)) == nil)
    }
}
