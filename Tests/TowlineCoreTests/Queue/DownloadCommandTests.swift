import Testing
import TowlineCore

@Suite("Commands for a download")
struct DownloadCommandTests {
    @Test("the table, row by row")
    func table() {
        let rows:
            [(
                RegisteredState, pause: DownloadCommand.Effect, resume: DownloadCommand.Effect,
                retry: DownloadCommand.Effect, cancel: DownloadCommand.Effect
            )] = [
                (.queued, .change(.paused), .none, .none, .change(.cancelled)),
                (.active, .change(.paused), .none, .none, .change(.cancelled)),
                (.waiting, .change(.paused), .change(.queued), .change(.queued), .change(.cancelled)),
                (.paused, .none, .change(.queued), .change(.queued), .change(.cancelled)),
                (.finished, .refused, .refused, .refused, .refused),
                (.failed, .refused, .change(.queued), .change(.queued), .change(.cancelled)),
                (.cancelled, .refused, .refused, .change(.queued), .none),
                (.followUpFailed, .refused, .refused, .refused, .refused),
            ]
        #expect(rows.map(\.0) == RegisteredState.allCases)
        for row in rows {
            #expect(DownloadCommand.pause.effect(in: row.0) == row.pause, "\(row.0)")
            #expect(DownloadCommand.resume.effect(in: row.0) == row.resume, "\(row.0)")
            #expect(DownloadCommand.retry.effect(in: row.0) == row.retry, "\(row.0)")
            #expect(DownloadCommand.cancel.effect(in: row.0) == row.cancel, "\(row.0)")
        }
    }

    @Test("a command that was carried out has no further effect")
    func twice() {
        for command in DownloadCommand.allCases {
            for state in RegisteredState.allCases {
                guard case .change(let next) = command.effect(in: state) else { continue }
                #expect(next != state && command.effect(in: next) == .none)
            }
        }
    }
}
