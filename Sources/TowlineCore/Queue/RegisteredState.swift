/// The state of a download in the list. The list does not contain the current activity of a transfer (`connecting` …
/// `publishing`), because it would be wrong after a kill.
package enum RegisteredState: Int, Hashable, Sendable, CaseIterable {
    /// Waits until other downloads finish.
    case queued
    /// Has a transfer, or had one when the process ended.
    case active
    /// Waits for the network, the server or disk space, and continues automatically.
    case waiting
    /// Stopped by the user.
    case paused
    /// The file is complete.
    case finished
    /// Ended with an error.
    case failed
    /// Cancelled by the user.
    case cancelled

    /// `false` if a download in this state has no bytes that a transfer could continue.
    package var mayHaveJournal: Bool { self != .finished && self != .cancelled }
}

/// A command of a caller for one download.
package enum DownloadCommand: Hashable, Sendable, CaseIterable {
    /// Stops the download and keeps its bytes.
    case pause
    /// Continues a paused, waiting or failed download.
    case resume
    /// Continues a paused, waiting or failed download, and also starts a cancelled download again.
    case retry
    /// Ends the download and discards its bytes.
    case cancel

    /// The result of a command in a state.
    package enum Effect: Hashable, Sendable {
        /// The download changes to this state.
        case change(RegisteredState)
        /// The command has been carried out already.
        case none
        /// The command does not apply in this state. Nothing changes.
        case refused
    }

    /// Returns the effect of the command on a download without a transfer.
    ///
    /// The registry makes the change only from that state (`RegistryChange.onlyFrom`).
    package func effect(in state: RegisteredState) -> Effect {
        switch (self, state) {
        case (.pause, .queued), (.pause, .active), (.pause, .waiting): .change(.paused)
        case (.pause, .paused): .none
        case (.pause, .finished), (.pause, .failed), (.pause, .cancelled): .refused
        case (.resume, .queued), (.resume, .active), (.retry, .queued), (.retry, .active): .none
        case (.resume, .waiting), (.resume, .paused), (.resume, .failed): .change(.queued)
        case (.retry, .waiting), (.retry, .paused), (.retry, .failed), (.retry, .cancelled): .change(.queued)
        case (.resume, .finished), (.resume, .cancelled), (.retry, .finished): .refused
        case (.cancel, .queued), (.cancel, .active), (.cancel, .waiting), (.cancel, .paused), (.cancel, .failed):
            .change(.cancelled)
        case (.cancel, .cancelled): .none
        case (.cancel, .finished): .refused
        }
    }
}
