/// The state of a download in the registry, the stored list of downloads. The registry does not contain the current
/// activity (`connecting` … `publishing`), because it would be wrong after the process is killed.
public enum RegisteredState: String, Hashable, Sendable, CaseIterable {
    /// The download waits until other downloads finish.
    case queued
    /// The download runs, or ran when the process ended.
    case active
    /// Waits for the network, the server or disk space, and continues automatically.
    case waiting
    /// The download was stopped by the user.
    case paused
    /// The file of the download is complete.
    case finished
    /// The download ended with an error.
    case failed
    /// The download was cancelled by the user.
    case cancelled
    /// The file of the download is complete, but a follow-up action, such as unpacking, failed.
    case followUpFailed = "follow-up-failed"

    /// The number that the tables of the registry store for the state.
    package var number: Int {
        switch self {
        case .queued: 0
        case .active: 1
        case .waiting: 2
        case .paused: 3
        case .finished: 4
        case .failed: 5
        case .cancelled: 6
        case .followUpFailed: 7
        }
    }

    /// Creates the state from the number that the tables of the registry store. Returns `nil` for an unknown number.
    package init?(number: Int) {
        guard let state = Self.allCases.first(where: { $0.number == number }) else { return nil }
        self = state
    }

    /// `true` if a download in this state may have a part file and a journal (the record of its valid bytes), so that
    /// it can resume.
    package var mayHaveJournal: Bool { !isComplete && self != .cancelled }

    /// `true` if the file of the download is complete, also if a follow-up action failed.
    package var isComplete: Bool { self == .finished || self == .followUpFailed }
}

/// A command of an API client or a user for one download in the registry, the stored list of downloads.
package enum DownloadCommand: Hashable, Sendable, CaseIterable {
    /// Stops the download and keeps its bytes.
    case pause
    /// Continues a paused, waiting or failed download.
    case resume
    /// Continues a paused, waiting or failed download, and also starts a cancelled download again.
    case retry
    /// Ends the download and discards its bytes.
    case cancel

    /// The effect of a command on a download that is in a given state.
    package enum Effect: Hashable, Sendable {
        /// The command changes the download to this state.
        case change(RegisteredState)
        /// The download already is as the command wants it. The command succeeds without a change.
        case none
        /// The command does not apply in this state. The download is unchanged, and the caller usually reports the
        /// error `illegalTransition`.
        case refused
    }

    /// Returns the effect of the command on a download that is in `state` and does not run in this process.
    ///
    /// The registry makes the change only if the download is still in `state` (`RegistryChange.onlyFrom`).
    package func effect(in state: RegisteredState) -> Effect {
        switch (self, state) {
        case (.pause, .queued), (.pause, .active), (.pause, .waiting): .change(.paused)
        case (.pause, .paused): .none
        case (_, .finished), (_, .followUpFailed): .refused
        case (.pause, .failed), (.pause, .cancelled): .refused
        case (.resume, .queued), (.resume, .active), (.retry, .queued), (.retry, .active): .none
        case (.resume, .waiting), (.resume, .paused), (.resume, .failed): .change(.queued)
        case (.retry, .waiting), (.retry, .paused), (.retry, .failed), (.retry, .cancelled): .change(.queued)
        case (.resume, .cancelled): .refused
        case (.cancel, .queued), (.cancel, .active), (.cancel, .waiting), (.cancel, .paused), (.cancel, .failed):
            .change(.cancelled)
        case (.cancel, .cancelled): .none
        }
    }
}

extension RegisteredState {
    /// Creates the state that the registry stores for a download in the given state: a download that runs is `active`.
    package init(_ state: DownloadState) {
        self =
            switch state {
            case .queued: .queued
            case .connecting, .downloading, .verifying, .publishing: .active
            case .waiting: .waiting
            case .paused: .paused
            case .finished: .finished
            case .failed: .failed
            case .cancelled: .cancelled
            }
    }
}
