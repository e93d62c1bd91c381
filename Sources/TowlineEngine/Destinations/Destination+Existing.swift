internal import TowlineCore

/// The functions of `Destination` that decide about an existing file with the download's final name: it may be the
/// requested file, or another one that must be kept, replaced or avoided.
extension Destination {
    private func policy(for place: Place) -> DestinationPolicy {
        DestinationPolicy(
            existing: options.existing, hasChecksum: options.checksum != nil, isUsersName: isUsersName(place.name))
    }

    /// Returns whether the user chose a file name: with an option, or as the last path component of the URL before any
    /// redirect. Compares bytes: two names that differ in their Unicode normalization are two files.
    private func isUsersName(_ name: String) -> Bool {
        if name.utf8.elementsEqual(key.nameOfURL.utf8) { return true }
        guard case .file(_, let chosen?) = options.target else { return false }
        return !options.hasLearnedName && name.utf8.elementsEqual(chosen.utf8)
    }

    /// `true` if the user chose the name of the file.
    var isUsersName: Bool { place.map { isUsersName($0.name) } ?? true }

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
        case .compare: if let file { compare(file, plan) }
        case .prove(let isKnown): prove(place, file, plan, isKnown: isKnown)
        case .findNumbered(let elseProve):
            if let (file, numbered) = try finishedBefore(besides: place, plan) {
                try decide(.finished(isThis: true), numbered, file, offered: plan)
            } else if elseProve {
                prove(place, file, plan, isKnown: false)
            }
        case .refuse: throw refusal(of: place, policy)
        case .download, .resume, .resumeIfNameIsFree, .replaceUnfinished: break
        }
    }

    /// Returns the error for an existing file that must stay.
    private func refusal(of place: Place, _ policy: DestinationPolicy) -> TowlineError {
        let exists = "\(place.path) already exists and is not known to come from this URL"
        guard policy.existing != policy.forOtherFiles else {
            return TowlineError(
                .destinationExists, "\(exists), so it was not replaced. Remove the file, or \(Remedy.existing)")
        }
        if services.traces {
            let choice = options.existing.rawValue
            observer?.traced(
                "the server chose the name \(place.name), and that file is not marked as a download of this URL"
                    + " -> do not \(choice) the file")
        }
        var error = TowlineError(
            .destinationExists,
            "\(exists). The server chose this name, so the file was not replaced. To replace it, \(Remedy.ownName)")
        error.order = .replace(path: place.path, url: source, options.existing)
        return error
    }

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
            default: throw Self.anothers(part, at: place)
            }
            switch try services.storage.survey(named: place, for: source) {
            case .nothing, .unfinished: return false
            case .finished(let file, let origin):
                // Without its secrets, the URL may be that of another file. The first response shows that.
                if plan == nil, origin == source, options.url.isAmbiguousWithoutSecrets { return false }
                let isThis = origin == source && (plan.map { isOffered(file, $0.representation) } ?? true)
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

    private static func anothers(_ part: OpenPart, at place: Place) -> TowlineError {
        let other = part.journal?.record.source ?? ""
        return TowlineError(
            .destinationExists,
            "\(place.name).tow is an unfinished download of another URL (\(other)). \(Remedy.anotherName.sentence);"
                + " to resume the other download, \(Remedy.checksum) or \(Remedy.unsafeResume);"
                + " to replace it, \(Remedy.overwriting)")
    }

    private func prove(_ place: Place, _ file: PublishedFile?, _ plan: PreparePlan?, isKnown: Bool) {
        guard let file, let checksum = options.checksum else { return }
        proof = Proof(place: place, checksum: checksum, length: file.length, plan: plan, isKnown: isKnown)
    }

    /// Returns whether a finished file from this URL is the version that the server offers now. If the URL contains
    /// secrets, which are not stored and may select the file, length and date must also be equal.
    func isOffered(_ file: PublishedFile, _ offered: Representation) -> Bool {
        guard options.url.isAmbiguousWithoutSecrets else { return true }
        guard file.length == offered.completeLength, let modified = offered.lastModified else { return false }
        return file.modified == modified.secondsSince1970
    }

    /// Returns the finished file of an earlier run of this download that got a numbered name, as in `NAME (1)`, because
    /// its name was taken; `nil` if none exists.
    func finishedBefore(
        besides place: Place, _ plan: PreparePlan?
    ) throws(TowlineError) -> (PublishedFile, Place)? {
        // Without its secrets, the URL may be that of another file. The first response shows that.
        guard plan != nil || !options.url.isAmbiguousWithoutSecrets else { return nil }
        for number in 1..<Self.mostNumbered {
            let other = Place(directory: place.directory, name: SafeFileName.numbered(place.name, number))
            switch try services.storage.survey(named: other, for: source) {
            case .nothing: return nil
            case .finished(let file, let origin):
                let isThis = origin == source && plan.map { isOffered(file, $0.representation) } ?? true
                if isThis, !refuted.contains(other) { return (file, other) }
            case .occupied, .unfinished: break
            }
        }
        return nil
    }

    /// Makes the first request conditional on a newer version than the existing `file` (`ExistingPolicy.update`). If a
    /// response exists already (`plan`), compares the file with that response instead.
    private func compare(_ file: PublishedFile, _ plan: PreparePlan?) {
        guard let modified = file.modified else { return }
        let present = ExistingFile(length: file.length, modified: modified, version: file.version)
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
    func conclude(_ proof: Proof, _ result: Result<FileProof, TowlineError>) throws(TowlineError) {
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
