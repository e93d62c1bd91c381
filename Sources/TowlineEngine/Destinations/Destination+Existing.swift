internal import TowlineCore

/// The functions of `Destination` that decide about an existing file with the download's final name: it may be the
/// requested file, or another one that must be kept, replaced or avoided.
extension Destination {
    func policy(for place: Place) -> DestinationPolicy {
        DestinationPolicy(
            existing: options.existing, hasChecksum: options.checksum != nil,
            isUsersName: options.isUsersName(place.name, nameOfURL: key.nameOfURL))
    }

    /// `true` if the user chose the name of the file.
    var isUsersName: Bool { place.map { options.isUsersName($0.name, nameOfURL: key.nameOfURL) } ?? true }

    /// Decides about an existing file with the final name: sets `outcome` (no download is needed), `proof` (its
    /// checksum must be computed) or `compared` (the server is asked for a newer version), throws, or does nothing if
    /// it will be replaced.
    ///
    /// - Parameters:
    ///   - occupant: the kind of the existing file.
    ///   - file: the file; `nil` if it is not a regular file that can be read.
    ///   - plan: the response whose destination is being prepared; `nil` before the first request.
    func decide(
        _ occupant: DestinationPolicy.Occupant, _ place: Place, _ file: PublishedFile?, offered plan: PreparePlan?
    ) throws(TowlineError) {
        let isRefuted = refuted.contains(place)
        let policy = policy(for: place)
        let mayReplace = [.fail, .overwrite, .update].contains(options.existing)
        if mayReplace, occupant != .finished(isThis: true) || isRefuted {
            try services.storage.checkReplaceable(place, isReplaced: policy.forOtherFiles.replaces)
        }
        switch policy.step(for: occupant, isRefuted: isRefuted) {
        case .keep: outcome = file.map { .alreadyThere($0) }
        case .skip: outcome = .skipped(path: place.path)
        case .compare: if let file { compare(file, at: place, plan) }
        case .prove(let isKnown): prove(place, file, plan, isKnown: isKnown)
        case .findNumbered(let elseProve):
            if let (file, numbered) = try finishedBefore(besides: place, plan) {
                try decide(.finished(isThis: true), numbered, file, offered: plan)
            } else if elseProve {
                prove(place, file, plan, isKnown: false)
            }
        case .refuse:
            guard policy.existing != policy.forOtherFiles else { throw .occupied(place) }
            trace(
                "the server chose the name \(place.name), and that file is not marked as a download of this URL"
                    + " -> do not \(options.existing.rawValue) the file")
            throw .occupiedUnderServersName(place, key.link, options.existing)
        case .download, .resume, .resumeIfNameIsFree, .replaceUnfinished: break
        }
    }

    func trace(_ text: @autoclosure () -> String) { if services.traces { observer?.traced(text()) } }

    /// Decides whether this download must not resume the unfinished download `part`, because of its URL or an existing
    /// file with the final name. If so, closes it and returns `true`; throws if its files prevent this download.
    func leaves(_ part: OpenPart, at place: Place, _ plan: PreparePlan?) throws(TowlineError) -> Bool {
        do throws(TowlineError) {
            switch policy(for: place).step(for: .unfinished(isOurs: isOurs(part))) {
            case .replaceUnfinished:
                // The first response replaces it.
                if plan == nil { part.sink.close() }
                return plan == nil
            case .resumeIfNameIsFree: break
            case .resume: return false
            default: throw .otherDownload(part, at: place)
            }
            switch try services.storage.survey(named: place, for: key.link.text) {
            case .nothing, .unfinished: return false
            case .finished(let file, let origin):
                // The first response shows whether the server has this file.
                if plan == nil, [.signedAgain, .unknown].contains(origin.relation(to: key.link)) { return false }
                let isThis = isThis(file, origin, plan?.representation)
                if isThis, options.existing.replaces { return false }
                try decide(.finished(isThis: isThis), place, file, offered: plan)
            case .occupied(let file): try decide(.other(isFile: file != nil), place, file, offered: plan)
            }
        } catch {
            part.sink.close()
            throw error
        }
        part.sink.close()
        tell(.info, .disk, "the file already exists. Its unfinished download \(place.name).tow is kept but not resumed")
        return true
    }

    /// Stores in the journal that the part file is its own, although the inode number differs.
    func adoptPart() {
        storing { () throws(TowlineError) in if let part { try part.journal?.adoptPart(part.sink) } }
    }

    private func prove(_ place: Place, _ file: PublishedFile?, _ plan: PreparePlan?, isKnown: Bool) {
        guard let file, let checksum = options.checksum else { return }
        proof = ExistingFileProof(place: place, checksum: checksum, length: file.length, plan: plan, isKnown: isKnown)
    }

    /// Returns whether a finished file is a finished download of this URL. If its URL may be that of another file, the
    /// response must prove the equality. `update` and `overwrite` need no proof for a link that is signed again.
    ///
    /// - Parameter offered: the metadata in the response; `nil` before the first response.
    func isThis(_ file: PublishedFile, _ origin: StoredSource, _ offered: Representation?) -> Bool {
        switch origin.relation(to: key.link) {
        case .same: true
        case .signedAgain where options.existing.replaces: true
        case .signedAgain, .unknown: offered.map { file.isProven(by: $0) } ?? false
        case .different: false
        }
    }

    /// Returns the relation of this URL to that of an unfinished download.
    func relation(to part: OpenPart) -> LinkRelation { part.source?.relation(to: key.link) ?? .same }

    /// Returns whether an unfinished download must not be resumed because it is of another URL, or because a response
    /// (`offered`) shows that it is of another file.
    func isOther(_ part: OpenPart, at place: Place, _ offered: Representation) -> Bool {
        switch relation(to: part) {
        case .same: return false
        case .different: return true
        case .signedAgain, .unknown:
            guard !options.vouchesForPart, let known = part.journal?.record.representation else { return false }
            return changes.otherParts.contains(place) || !ContinuationPolicy.mayContinue(known, with: offered)
        }
    }

    /// Closes an unfinished download that proved to be of another file, and keeps its files. Throws if the user chose
    /// the file name, which that download has.
    func leaveOther(_ old: OpenPart, at place: Place) throws(TowlineError) {
        guard !options.isNamed else { throw .otherDownload(old, at: place) }
        tell(.info, .disk, "\(place.name).tow is of another file and stays. This download gets another name")
        if let part = release() { part.sink.close() }
        changes.otherParts.append(place)
        changes.replacements += 1
        changes.isGuess = false
    }

    /// Removes the record of bytes that proved wrong. If the part file may be that of another file, the download fails
    /// instead, and the part file stays.
    func withdraw(_ range: ByteRange) {
        storing { () throws(TowlineError) in
            if changes.isGuess, let part, let place { throw .otherDownload(part, at: place) }
            try part?.journal?.withdraw(range)
        }
    }

    /// Returns the finished file of an earlier run of this download that got a numbered name, as in `NAME (1)`, because
    /// its name was taken; `nil` if none exists.
    func finishedBefore(
        besides place: Place, _ plan: PreparePlan?
    ) throws(TowlineError) -> (PublishedFile, Place)? {
        for number in 1..<Self.mostNumbered {
            let other = Place(directory: place.directory, name: SafeFileName.numbered(place.name, number))
            switch try services.storage.survey(named: other, for: key.link.text) {
            case .nothing: return nil
            case .finished(let file, let origin):
                if isThis(file, origin, plan?.representation), !refuted.contains(other) { return (file, other) }
            case .occupied, .unfinished: break
            }
        }
        return nil
    }

    /// Makes the first request conditional on a newer version than the existing `file` (`ExistingPolicy.update`). If a
    /// response exists already (`plan`), compares the file with that response instead.
    func compare(_ file: PublishedFile, at place: Place, _ plan: PreparePlan?) {
        var present = ExistingFile(length: file.length, modified: file.modified ?? 0, version: file.version)
        let first = services.storage.firstBytes(of: place)
        present.kind = first.isEmpty ? nil : ContentKind(firstBytes: first)
        guard let plan else { return compared = (present, file) }
        let offered = plan.representation
        if present.isCurrent(offered, at: plan.resolved) {
            outcome = .upToDate(file)
        } else if offered.lastModified == nil, offered.entityTag == nil {
            tell(
                .info, .unverified,
                "the server sent neither an ETag nor a Last-Modified date, so the existing file cannot be compared and is"
                    + " downloaded again")
        }
    }

    /// Acts on the result of comparing an existing file with a checksum. If they match, sets `outcome`, and no download
    /// is needed; if not, throws unless this download may replace the file or take another name.
    func conclude(_ proof: ExistingFileProof, _ result: Result<FileProof, TowlineError>) throws(TowlineError) {
        let name = proof.checksum.algorithm.rawValue
        switch result {
        case .success(.proven(let file)):
            observer?.noticed(.verified([proof.checksum]))
            outcome = options.existing == .update ? .upToDate(file) : .alreadyThere(file)
        // The file stays and the download gets another name, or the download replaces it.
        case _ where [.rename, .update].contains(options.existing): refuted.append(proof.place)
        case .failure(let error): throw error
        case .success(.refuted(nil)):
            throw TowlineError(
                .destinationExists,
                "\(proof.place.path) was changed or removed by another program while Towline read it to compare its"
                    + " checksum, so the download stopped. Start the download again")
        case .success(.refuted(let mismatch?)) where proof.isKnown:
            throw TowlineError(
                .checksumMismatch,
                "\(proof.place.path) already exists and does not match the checksum: \(mismatch)."
                    + " To download again, \(Remedy.overwriting)")
        case .success(.refuted):
            throw TowlineError(
                .destinationExists,
                "\(proof.place.path) already exists and does not match the expected \(name) checksum, so it was not"
                    + " replaced. Remove the file, or \(Remedy.existing)")
        }
    }
}
