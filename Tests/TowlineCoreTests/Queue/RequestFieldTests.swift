import Testing
import TowlineCore

@Suite("A field of a request for a download that the list already contains")
struct RequestFieldTests {
    /// The effects on a queued, a running, a paused, a failed and a finished download. A field without a row fails.
    private static let rows: [(fields: [RequestField], effects: [RequestField.Effect])] = [
        ([.priority, .group, .metadata], [.now, .now, .now, .newRequest, .now]),
        ([.startsPaused], [.now, .now, .now, .newRequest, .notNeeded]),
        ([.rateLimit], [.nextStart, .now, .nextStart, .newRequest, .nextStart]),
        ([.unpack], [.nextStart, .now, .nextStart, .newRequest, .check]),
        ([.checksum, .maximumSize], [.nextStart, .restart, .nextStart, .newRequest, .check]),
        ([.headers, .user, .cookies, .proxy], [.nextStart, .restart, .nextStart, .newRequest, .notNeeded]),
        (
            [
                .mirrors, .certificateAuthorities, .netrcFile, .connections, .existing, .stallTimeout, .maximumTries,
                .retryWait, .maximumWait, .retryStatuses, .maximumRedirects, .allowDowngrade, .http1, .sequential,
                .unsafeResume, .ignoreServerChecksums, .acceptHTML,
            ], [.nextStart, .restart, .nextStart, .newRequest, .nextStart]
        ),
    ]

    @Test("the table, row by row, has each field once")
    func table() {
        let fields = Self.rows.flatMap(\.fields)
        #expect(fields.count == RequestField.allCases.count && Set(fields) == Set(RequestField.allCases))
        for (fields, effects) in Self.rows {
            for field in fields {
                let states: [RegisteredState] = [.queued, .active, .paused, .failed, .finished]
                #expect(states.map { field.effect(in: $0) } == effects, "\(field)")
                #expect(field.effect(in: .waiting) == field.effect(in: .queued), "\(field)")
                #expect(field.effect(in: .cancelled) == field.effect(in: .failed), "\(field)")
                #expect(field.effect(in: .followUpFailed) == field.effect(in: .finished), "\(field)")
            }
        }
    }

    @Test("each option of a transfer is a field with the same name")
    func options() {
        for key in TransferOptions.CodingKeys.allCases {
            #expect(RequestField(rawValue: key.rawValue) != nil, "\(key.rawValue)")
        }
    }
}
