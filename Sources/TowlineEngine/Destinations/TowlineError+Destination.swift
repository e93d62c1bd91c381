internal import TowlineCore

/// The errors of destinations that other files or downloads have.
extension TowlineError {
    /// The error for a destination of another download of this process or batch.
    static func askedForTwice(_ place: Place) -> TowlineError {
        TowlineError(
            .destinationBusy, "\(place.path) is already the destination of another download. Choose another name")
    }

    /// The error for an existing file that must stay.
    static func occupied(_ place: Place) -> TowlineError {
        TowlineError(
            .destinationExists,
            "\(place.path) already exists and is not known to come from this URL, so it was not replaced."
                + " Remove the file, or \(Remedy.existing)")
    }

    /// The error for an existing file that must stay because the server chose its name. `policy`: the user's choice.
    static func occupiedUnderServersName(
        _ place: Place, _ link: LinkIdentity, _ policy: ExistingPolicy
    ) -> TowlineError {
        var error = TowlineError(
            .destinationExists,
            "\(place.path) already exists and is not known to come from this URL. The server chose this name, so the file"
                + " was not replaced. To replace it, \(Remedy.ownName)")
        error.order = .replace(path: place.path, url: link.text, policy)
        return error
    }

    /// The error for a destination that has an unfinished download of another URL.
    static func otherDownload(_ part: OpenPart, at place: Place) -> TowlineError {
        let other = part.journal?.record.source ?? ""
        return TowlineError(
            .destinationExists,
            "\(place.name).tow is an unfinished download of another URL (\(other)). \(Remedy.anotherName.sentence);"
                + " to resume the other download, \(Remedy.checksum) or \(Remedy.unsafeResume);"
                + " to replace it, \(Remedy.overwriting)")
    }
}

extension CreateTerms {
    /// Creates the terms for the part file of a response: a small file has no journal.
    init(_ plan: PreparePlan, _ options: DownloadOptions, _ link: LinkIdentity) {
        let isSmall = (plan.representation.completeLength ?? .max) <= SmallFilePolicy.longest
        self.init(journaled: !isSmall, reservesSpace: options.reservesSpace)
        self.link = link
        keepsReplaced = plan.keepsReplaced
    }
}

extension DownloadRecord {
    /// Creates the record of a new part file for a response.
    init(
        _ plan: PreparePlan, of link: LinkIdentity, at place: Place, generation: UInt32, _ options: DownloadOptions
    ) {
        self.init(
            source: link.text, resolved: plan.resolved.withoutSecrets, name: place.name,
            representation: plan.representation, checksums: plan.checksums, generation: generation,
            lacksRanges: plan.lacksRanges, publicAddressesOnly: options.connection.publicAddressesOnly,
            mayBePlain: options.mayBringPlainBytes)
        download = options.download
    }
}

extension HeldDownload {
    /// Creates the description of an unfinished download from its part file and its journal.
    ///
    /// - Parameters:
    ///   - written: the bytes that count as written.
    ///   - isMoved: `true` if the part file came from another URL.
    init(
        _ part: OpenPart, _ journal: any Journal, _ written: ByteRangeSet, isMoved: Bool, _ options: DownloadOptions
    ) {
        let (record, isDowngrade) = (journal.record, options.isDowngrade(from: journal.record))
        self.init(
            representation: record.representation, written: written, durable: journal.durable,
            isDoubtful: part.isDoubtful || isMoved,
            isUntrusted: part.isDoubtful && !part.isRenumbered || isDowngrade, checksums: record.checksums,
            lacksRanges: record.lacksRanges)
        isRenumbered = part.isRenumbered
    }
}

extension DownloadOptions {
    /// Throws if the user gave a request field that requests set themselves.
    func checkFields() throws(TowlineError) {
        for line in userFields.lines where RequestTerms.isReserved(line.name) {
            throw TowlineError(.unusableHeader, FieldValidation.notSettable(line.name))
        }
    }
}
