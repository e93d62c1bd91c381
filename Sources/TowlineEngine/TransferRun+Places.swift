internal import TowlineCore

/// Where the bytes go: what is there already, and what is to be created.
extension TransferRun {
    /// Looks at what is known before the first request. Where `proof` is to be read first, that is all.
    func begin() throws(TowlineError) -> [TransferAction] {
        try checkFields()
        var held: HeldDownload?
        switch options.target {
        case .file(let directory, let name):
            if early == nil { held = try lookBefore(directory, name) }
            if proof != nil { return [] }
            if early != nil {
                abandonHeadStart()
                ending = .finished
                return []
            }
        case .stream(let output):
            part = try services.storage.stream(to: output, digesting: options.checksum.map { [$0.algorithm] } ?? [])
        }
        if held == nil, let start = takeHeadStart() {
            return machine.handle(.takenOver(start.writer.plan, startedAt: start.startedAt), context())
        }
        abandonHeadStart()
        return machine.handle(.begin(held), context())
    }

    private func checkFields() throws(TowlineError) {
        for line in options.userFields.lines {
            guard RequestTerms.isReserved(line.name) else { continue }
            throw TowlineError(.unusableHeader, FieldValidation.notSettable(line.name))
        }
    }

    private func lookBefore(_ directory: String, _ name: String?) throws(TowlineError) -> HeldDownload? {
        let known = name.map { Place(directory: directory, name: $0) }
        let guess = Place(directory: directory, name: nameOfURL).numbered(known == nil ? nameNumber : 0)
        let begun = known == nil ? services.storage.find(source: source, inDirectory: directory) : nil
        let candidate = known ?? begun ?? guess
        if known == nil, begun == nil, services.storage.seemsVacant(guess) {
            vacancy = (guess, services.now)
            return nil
        }
        let survey: Survey
        do throws(TowlineError) {
            survey = try look(at: candidate)
        } catch  where error.code == .destinationBusy && known == nil {
            // Whether that one is ours to wait for is known with the name, after the first answer.
            return nil
        }
        switch survey {
        case .nothing(let notices):
            tell(notices)
            vacancy = (candidate, services.now)
            return nil
        case .unfinished(let part):
            guard known != nil || part.journal?.record.source == source else {
                // Somebody else's: the name is not decided yet, and this one is not ours to touch.
                part.sink.close()
                return nil
            }
            if try leaves(part, at: candidate, nil) { return nil }
            if begun != nil, candidate != guess {
                let text = "found an unfinished download of \(candidate.name) from the same URL"
                tell(.info, .disk, "\(text). Resuming if the server has the same file")
            }
            return try take(part, at: candidate)
        case .finished(let file, let origin):
            if origin == source {
                // Where it may be another's, the first answer tells.
                if !options.url.isAmbiguousWithoutSecrets { try settle(file, at: candidate, nil) }
            } else if known != nil {
                try decideOccupied(candidate, file, offered: nil)
            } else if services.names == nil, let (file, numbered) = try finishedBefore(besides: candidate, nil) {
                try settle(file, at: numbered, nil)
            }
            return nil
        case .occupied(let file):
            if known != nil { try decideOccupied(candidate, file, offered: nil) }
            return nil
        }
    }

    /// A survey that tells a download of this process from one of another.
    private func look(at place: Place) throws(TowlineError) -> Survey {
        do throws(TowlineError) {
            return try services.storage.survey(place, for: source, allowsCopies: options.allowsUntrustedBytes)
        } catch {
            guard error.code == .destinationBusy, services.places.user(of: place) != nil else { throw error }
            throw Self.askedForTwice(place)
        }
    }

    private static func askedForTwice(_ place: Place) -> TowlineError {
        TowlineError(
            .destinationBusy, "\(place.path) is already the destination of a running download. Choose another name")
    }

    /// The download is finished already: nothing to do, unless it is not what the user expects or wants it anew.
    private func settle(_ file: PublishedFile, at place: Place, _ plan: PreparePlan?) throws(TowlineError) {
        guard options.existing != .overwrite else { return }
        guard let checksum = options.checksum else {
            if options.existing == .update { update(file, plan) } else { early = .alreadyThere(file) }
            return
        }
        guard !refuted.contains(place) else { return try decideOccupied(place, file, offered: plan) }
        proof = Proof(place: place, checksum: checksum, length: file.length, plan: plan, isKnown: true)
    }

    /// Whether a finished file that came from this URL, as far as that can be told without its secrets, is what the
    /// server offers now.
    private func isThis(_ file: PublishedFile, _ offered: Representation) -> Bool {
        guard options.url.isAmbiguousWithoutSecrets else { return true }
        guard file.length == offered.completeLength, let modified = offered.lastModified else { return false }
        return file.modified == modified.secondsSince1970
    }

    /// Goes on with an unfinished download that this process now holds.
    private func take(_ part: OpenPart, at place: Place) throws(TowlineError) -> HeldDownload? {
        occupy(place, part)
        tell(part.notices)
        if options.reservesSpace { try part.sink.promiseSpace() }
        guard let journal = part.journal else {
            return HeldDownload(representation: Representation(), written: ByteRangeSet())
        }
        defer { adopt(journal) }
        let isMoved = journal.record.source != source
        if isMoved, isOurs(part) {
            tell(.info, .disk, "\(place.name).tow came from another URL. Resuming if the new URL has the same file")
        }
        return HeldDownload(
            representation: journal.record.representation, written: part.claims, durable: journal.durable,
            isDoubtful: part.isDoubtful || isMoved,
            isUntrusted: part.isDoubtful || options.isDowngrade(from: journal.record),
            checksums: journal.record.checksums, lacksRanges: journal.record.lacksRanges)
    }

    private func isOurs(_ part: OpenPart) -> Bool {
        guard let other = part.journal?.record.source else { return true }
        let isVouchedFor = options.checksum != nil || options.unsafeResume || options.ownsPart
        return ContinuationPolicy.isSame(other, as: options.url, isVouchedFor: isVouchedFor)
    }

    /// Whether an unfinished download is let go of, because it is another's or because of what else is there. That is said
    /// before its bytes come.
    private func leaves(_ part: OpenPart, at place: Place, _ plan: PreparePlan?) throws(TowlineError) -> Bool {
        do throws(TowlineError) {
            if !isOurs(part) {
                guard options.existing == .overwrite else { throw Self.anothers(part, at: place) }
                // The first answer replaces it.
                if plan == nil { part.sink.close() }
                return plan == nil
            }
            guard options.existing == .fail || options.existing == .skip else { return false }
            switch try services.storage.survey(named: place, for: source) {
            case .nothing, .unfinished: return false
            case .finished(let file, let origin):
                // Where it may be another's, the first answer tells.
                if plan == nil, origin == source, options.url.isAmbiguousWithoutSecrets { return false }
                if origin == source, plan.map({ isThis(file, $0.representation) }) ?? true {
                    try settle(file, at: place, plan)
                } else {
                    try decideOccupied(place, file, offered: plan)
                }
            case .occupied(let file): try decideOccupied(place, file, offered: plan)
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
            "\(place.name).tow is an unfinished download of another URL (\(other)). Choose another name,"
                + " resume it with --checksum or --unsafe-resume, or replace it with --if-exists overwrite")
    }

    private func occupy(_ place: Place, _ part: OpenPart) {
        hold(place, part)
        services.places.occupy(place, by: identity)
    }

    private func hold(_ place: Place, _ part: OpenPart) {
        if let item { services.names?.decided(item.number) }
        self.part = part
        self.place = place
    }

    /// Something else has the name, or what we cannot tell from it: a checksum can.
    ///
    /// - Parameter file: that; `nil`: it is no file that could be read.
    private func decideOccupied(
        _ place: Place, _ file: PublishedFile?, offered plan: PreparePlan?
    ) throws(TowlineError) {
        let checksum = refuted.contains(place) ? nil : options.checksum
        let proof = file.flatMap { file in
            checksum.map { Proof(place: place, checksum: $0, length: file.length, plan: plan, isKnown: false) }
        }
        switch options.existing {
        case .skip: early = .skipped(path: place.path)
        case .overwrite: try services.storage.checkReplaceable(place, isReplaced: true)
        case .update:
            try services.storage.checkReplaceable(place, isReplaced: true)
            self.proof = proof
            // A file that does not match the checksum is replaced without a condition.
            if options.checksum == nil, let file { update(file, plan) }
        case .rename:
            if let (file, numbered) = try finishedBefore(besides: place, plan) {
                try settle(file, at: numbered, plan)
            } else {
                self.proof = proof
            }
        case .fail:
            try services.storage.checkReplaceable(place, isReplaced: false)
            guard let proof else {
                throw TowlineError(
                    .destinationExists,
                    "\(place.path) already exists and is not known to come from this URL, so it was not replaced."
                        + " Remove the file, or use --if-exists overwrite or rename")
            }
            self.proof = proof
        }
    }

    /// This download, finished, under the number that it got because the name was taken then, too.
    private func finishedBefore(
        besides place: Place, _ plan: PreparePlan?
    ) throws(TowlineError) -> (PublishedFile, Place)? {
        // Where it may be another's, the first answer tells.
        guard plan != nil || !options.url.isAmbiguousWithoutSecrets else { return nil }
        for number in 1..<Self.mostNumbered {
            let other = Place(directory: place.directory, name: SafeFileName.numbered(place.name, number))
            switch try services.storage.survey(named: other, for: source) {
            case .nothing: return nil
            case .finished(let file, let origin):
                let isIt = origin == source && plan.map { isThis(file, $0.representation) } ?? true
                if isIt, !refuted.contains(other) { return (file, other) }
            case .occupied, .unfinished: break
            }
        }
        return nil
    }

    // MARK: The first answer

    /// Creates part file and journal, or finds that they are there.
    func prepare(_ plan: PreparePlan) {
        do throws(TowlineError) {
            if options.target.isStream { return step(.prepared) }
            if plan.isReplacement, let old = part, let place {
                try replace(old, at: place, plan)
                return step(.prepared)
            }
            guard case .file(let directory, let name) = options.target else { return }
            if let name {
                try open(Place(directory: directory, name: name), plan)
            } else if waitsForName(plan) {
                waitingForName = plan
            } else {
                try openNumbered(directory, plan)
            }
        } catch {
            step(.storageFailed(error))
        }
    }

    /// - Returns: `false` if the place belongs to another download and `mayYield` allows to leave it.
    @discardableResult
    func open(_ place: Place, _ plan: PreparePlan, mayYield: Bool = false) throws(TowlineError) -> Bool {
        if try fill(place, plan) { return true }
        switch try look(at: place) {
        case .nothing(let notices):
            tell(notices)
        case .unfinished(let part):
            if mayYield, let journal = part.journal, journal.record.source != source {
                part.sink.close()
                return false
            }
            if try leaves(part, at: place, plan) { break }
            let isOther = !isOurs(part)
            let held = try take(part, at: place)
            guard let held, !held.written.isEmpty, !isOther else {
                // Nothing worth asking about: this answer's bytes take its place.
                try replace(part, at: place, plan)
                step(.prepared)
                return true
            }
            step(.begin(held))
            return true
        case .finished(let file, let origin):
            // A link with other secrets is to be updated from as well.
            if origin == source, options.existing == .update || isThis(file, plan.representation) {
                try settle(file, at: place, plan)
            } else if mayYield {
                return false
            } else {
                try decideOccupied(place, file, offered: plan)
            }
        case .occupied(let file):
            try decideOccupied(place, file, offered: plan)
        }
        // `run` reads it, and goes on from there.
        if proof != nil { return true }
        if early != nil {
            leaveAlone()
            return true
        }
        try create(place, plan)
        step(.prepared)
        return true
    }

    /// Goes to a place where nothing was a moment ago without looking once more: what came meanwhile, a part file or a
    /// finished one, is found by creating.
    ///
    /// - Returns: `false` if it has to be looked at.
    private func fill(_ place: Place, _ plan: PreparePlan) throws(TowlineError) -> Bool {
        guard let vacancy, vacancy.place == place, services.now - vacancy.seen < .seconds(1) else { return false }
        self.vacancy = nil
        do throws(TowlineError) {
            try create(place, plan, requiresFreeName: true)
        } catch {
            guard error.code == .destinationBusy || error.code == .destinationExists else { throw error }
            return false
        }
        step(.prepared)
        return true
    }

    /// The answer is not needed: `early` says why.
    func leaveAlone() { step(.stop) }

    private func create(_ place: Place, _ plan: PreparePlan, requiresFreeName: Bool = false) throws(TowlineError) {
        let fresh = newRecord(plan, at: place, generation: 1)
        // Taken before there is a file to lock: two transfers of this process may come here at once.
        guard services.places.take(place, by: identity) else { throw Self.askedForTwice(place) }
        do throws(TowlineError) {
            var terms = terms(plan)
            terms.requiresFreeName = requiresFreeName
            terms.isAtHand = delivered.flatMap { writer($0)?.holdsWhole } ?? false
            // Nothing more comes that it could go on with.
            if terms.isAtHand { terms.journaled = false }
            hold(place, try services.storage.create(place, record: fresh, terms: terms))
        } catch {
            services.places.leave(place)
            throw error
        }
        record = fresh
        createdPart = true
        tell(part?.notices ?? [])
    }

    private func replace(_ old: OpenPart, at place: Place, _ plan: PreparePlan) throws(TowlineError) {
        let next = newRecord(plan, at: place, generation: (record?.generation ?? 0) + 1)
        part = try services.storage.replace(old, place: place, record: next, terms: terms(plan))
        tell(part?.notices ?? [])
        record = next
        checkpoints = CheckpointPolicy(now: services.now)
    }

    private func newRecord(_ plan: PreparePlan, at place: Place, generation: UInt32) -> DownloadRecord {
        DownloadRecord(
            source: source, resolved: plan.resolved.withoutSecrets, name: place.name,
            representation: plan.representation, checksums: plan.checksums, generation: generation,
            lacksRanges: plan.lacksRanges, publicAddressesOnly: options.connection.publicAddressesOnly,
            mayBePlain: options.mayBringPlainBytes)
    }

    private func terms(_ plan: PreparePlan) -> CreateTerms {
        let isSmall = (plan.representation.completeLength ?? .max) <= SmallFilePolicy.longest
        return CreateTerms(journaled: !isSmall, reservesSpace: options.reservesSpace)
    }
}
