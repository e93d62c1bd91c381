import TowlineCore

/// The errors of commands that every `DownloadManager` reports with the same text.
extension TowlineError {
    /// The error `unknownDownload` for an identifier that is not in the list.
    package static func unknown(_ id: DownloadID) -> TowlineError {
        TowlineError(
            .unknownDownload,
            "download \(id) is not in the list: it was removed or never existed. "
                + "Add the URL again to download the file")
    }

    /// The error `illegalTransition` for a command that the state of a download does not allow. `name` is the name of
    /// the file; `nil` while unknown.
    package static func refused(_ command: DownloadCommand, in state: RegisteredState, name: String?) -> TowlineError {
        cannotBe(command.participle, in: state, name: name)
    }

    /// The error `illegalTransition` for an action, given as a participle such as `paused`, that the state of a
    /// download does not allow.
    package static func cannotBe(_ action: String, in state: RegisteredState, name: String?) -> TowlineError {
        let name = name.map { TerminalSafeText.make($0) } ?? "the download"
        return TowlineError(
            .illegalTransition, "\(name) cannot be \(action) because the download is \(state); nothing was changed")
    }

    /// The error `closed`, for calls after the end of a manager.
    package static let managerClosed = TowlineError(
        .closed,
        "the list of downloads is closed, because the program that runs the downloads is ending. "
            + "Start that program again")
}
