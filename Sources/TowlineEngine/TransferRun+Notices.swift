internal import TowlineCore

/// Notices for the user.
extension TransferRun {
    func tell(_ level: TransferNotice.Level, _ kind: TransferNotice.Kind, _ text: String) {
        observer?.noticed(TransferNotice(level, kind, text))
    }

    /// Tells about the disk, and about calls that its file system does not offer.
    func tell(_ notices: [String] = []) {
        var all = notices
        if case .file(let directory, _) = options.target {
            all += services.storage.takeNotices(inDirectory: directory)
        }
        for text in all { tell(.warning, .disk, text) }
    }
}
