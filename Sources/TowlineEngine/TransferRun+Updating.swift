internal import TowlineCore

/// Compares an existing file with the version that the server offers (`ExistingPolicy.update`).
extension TransferRun {
    /// Makes the first request conditional. After the first answer, compares the file with the offered version instead,
    /// and `early` says if it is that.
    func update(_ file: PublishedFile, _ plan: PreparePlan?) {
        guard let modified = file.modified else { return }
        let existing = ExistingFile(length: file.length, modified: modified, version: file.version)
        guard let plan else {
            machine.existing = existing
            existingFile = file
            return
        }
        let offered = plan.representation
        if existing.isCurrent(offered, at: plan.resolved) {
            early = .upToDate(file)
        } else if offered.lastModified == nil, offered.entityTag == nil {
            tell(
                .info, .unverified,
                "the server sent neither an ETag nor a Last-Modified date, so the existing file cannot be compared and is"
                    + " downloaded again")
        }
    }
}
