internal import TowlineCore

/// The destination of one transfer: the files that exist there, and the part file that the transfer writes.
///
/// `DestinationPolicy` decides, and this type inspects, creates and replaces files. If a checksum must decide whether
/// an existing file is the requested one, `proof` is set, and the transfer reads the file first.
final class Destination {
    /// The result of preparing the destination for a response, which decides the next step of the transfer.
    enum Preparation {
        /// The part file is open, so the body of the response can be written.
        case ready
        /// An unfinished download exists at the destination. The transfer begins again, and requests only its missing
        /// bytes.
        case resume(HeldDownload)
        /// The requested file exists, so no download is needed. `outcome` has the result of the transfer.
        case done
        /// The transfer must first compute the checksum of the existing file in `proof`.
        case needsProof
        /// The transfer must wait until earlier downloads of the batch have their file names, so that equal names are
        /// numbered in order.
        case needsName
    }

    let options: DownloadOptions
    let services: TransferServices
    let mailbox: TransferMailbox
    /// The identity of this download: the user's URL, and the file name in the URL.
    let key: (link: LinkIdentity, nameOfURL: String)
    /// The download's entry in the list of a batch; `nil` outside a batch.
    let item: BatchRoster.Item?
    weak var observer: (any TransferObserver)?

    /// The part file with its journal, the file that records written bytes; `nil` before it is opened or created, and
    /// after `release`.
    private(set) var part: OpenPart?
    /// The metadata of the download that its journal stores, such as URL, length and ETag; `nil` before a part file
    /// exists.
    private(set) var record: DownloadRecord?
    private(set) var place: Place?
    var changes = PartFileChanges()
    /// A directory and file name where no file existed, and the time of that check, so that the part file can be
    /// created there without another check; `nil` if none is known.
    private var vacancy: (place: Place, seen: Duration)?
    /// The existing file whose checksum must be computed next; `nil` if none.
    var proof: ExistingFileProof?
    /// The locations of existing files whose checksums are not the requested one, so that they are not read again.
    var refuted: [Place] = []
    /// The result of a transfer that needs no download, because the file exists; `nil` if bytes must be downloaded.
    var outcome: CompletedTransfer.Outcome?
    /// The existing file that the first request asks the server to compare with its own: the server sends no body if
    /// both are equal. `nil` if the request is unconditional.
    var compared: (version: ExistingFile, file: PublishedFile)?

    init(
        _ options: DownloadOptions, _ services: TransferServices, _ mailbox: TransferMailbox, nameOfURL: String,
        observer: (any TransferObserver)?, item: BatchRoster.Item?
    ) {
        self.options = options
        self.services = services
        self.mailbox = mailbox
        self.observer = observer
        self.item = item
        key = (LinkIdentity(options.url), nameOfURL)
    }

    var existing: ExistingFile? { compared?.version }

    /// Sets `outcome` to the existing file, because the server reported that it has no newer version.
    func confirmExisting() { outcome = compared.map { .upToDate($0.file) } }

    func tell(_ level: TransferNotice.Level, _ kind: TransferNotice.Kind, _ text: String) {
        observer?.noticed(TransferNotice(level, kind, text))
    }

    /// Reports notices about files, such as a damaged journal, to the observer, and adds those about system calls that
    /// the file system does not support.
    func tell(_ notices: [String] = []) {
        var all = notices
        if case .file(let directory, _) = options.target {
            all += services.storage.takeNotices(inDirectory: directory)
        }
        for text in all { tell(.warning, .disk, text) }
    }

    /// Opens an output that takes the bytes in order, such as standard output. Throws if it cannot be opened.
    func openStream(_ output: StreamOutput) throws(TowlineError) {
        part = try services.storage.stream(to: output, digesting: options.checksum.map { [$0.algorithm] } ?? [])
    }

    /// Inspects the files at the destination before the first request, and opens and locks an unfinished download
    /// there. `name`: the file name that the user chose, if any.
    ///
    /// Returns the bytes of the unfinished download; `nil` if there are none. Afterwards `outcome` may be set (no
    /// request is needed), or `proof`, a file to read before the next call.
    func survey(_ directory: String, _ name: String?) throws(TowlineError) -> HeldDownload? {
        let known = name.map { Place(directory: directory, name: $0) }
        let guess = Place(directory: directory, name: key.nameOfURL).numbered(known == nil ? nameNumber : 0)
        let begun = known == nil ? services.storage.find(key.link, inDirectory: directory) : nil
        let candidate = known ?? begun ?? guess
        if known == nil, begun == nil, services.storage.seemsVacant(guess) {
            vacancy = (guess, services.now)
            return nil
        }
        let survey: Survey
        do throws(TowlineError) {
            survey = try look(at: candidate)
        } catch  where error.code == .destinationBusy && known == nil {
            // The first response gives the name, and so whether the other download is in the way.
            return nil
        }
        switch survey {
        case .nothing(let notices):
            tell(notices)
            vacancy = (candidate, services.now)
        case .unfinished(let part):
            guard known != nil || relation(to: part) == .same else {
                // The download of another URL, or possibly of another file. The first response shows that.
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
            switch origin.relation(to: key.link) {
            case .same: try decide(.finished(isThis: true), candidate, file, offered: nil)
            // The first response shows whether the server has this file.
            case .signedAgain, .unknown: break
            case .different where known != nil:
                try decide(.finished(isThis: false), candidate, file, offered: nil)
            case .different:
                if services.names == nil, let (file, numbered) = try finishedBefore(besides: candidate, nil) {
                    try decide(.finished(isThis: true), numbered, file, offered: nil)
                }
            }
        // An error with status 200 must not replace a file that may have the name.
        case .occupied(let file?) where known == nil && options.existing == .update: compare(file, at: candidate, nil)
        case .occupied where known == nil: break
        case .occupied(let file): try decide(.other(isFile: file != nil), candidate, file, offered: nil)
        }
        return nil
    }

    /// Inspects the files at a directory and file name. If its part file is locked, throws an error that says whether
    /// this process or another one is using it.
    private func look(at place: Place) throws(TowlineError) -> Survey {
        do throws(TowlineError) {
            return try services.storage.survey(place, for: key.link.text, allowsCopies: options.allowsUntrustedBytes)
        } catch {
            guard error.code == .destinationBusy, services.places.isTaken(place, besides: nil) else { throw error }
            throw .askedForTwice(place)
        }
    }

    /// Opens the unfinished download `part`, which this process has locked, to resume it. Returns its bytes; `nil` if
    /// it is not resumed.
    private func take(_ part: OpenPart, at place: Place) throws(TowlineError) -> HeldDownload? {
        hold(place, part)
        services.places.occupy(place, by: key.link.exact)
        tell(part.notices)
        if options.reservesSpace { try part.sink.promiseSpace() }
        guard let journal = part.journal else {
            return HeldDownload(representation: Representation(), written: ByteRangeSet())
        }
        defer { adopt(journal) }
        let isMoved = relation(to: part) != .same
        changes.isGuess = isMoved && !options.vouchesForPart && !options.isDowngrade(from: journal.record)
        if isMoved, isOurs(part) {
            tell(.info, .disk, "\(place.name).tow came from another URL. Resuming if the new URL has the same file")
        }
        return HeldDownload(part, journal, part.claims, isMoved: isMoved, options)
    }

    /// Discards the present part file and opens the earlier one, whose bytes are then resumed.
    ///
    /// - Parameter isOpen: `true` if no part file has replaced the earlier one yet, so that it is still open.
    func resumeEarlier(isOpen: Bool) throws(TowlineError) -> Preparation {
        if isOpen, let present = part, let journal = present.journal {
            let isMoved = relation(to: present) != .same
            return .resume(HeldDownload(present, journal, journal.written, isMoved: isMoved, options))
        }
        // If it is missing, no byte is held.
        var held: HeldDownload?
        if let present = release(), let place {
            present.sink.discard()
            changes.replacements += 1
            if case .unfinished(let earlier) = try look(at: place) { held = try take(earlier, at: place) }
        }
        return .resume(held ?? HeldDownload(representation: Representation(), written: ByteRangeSet()))
    }

    /// Removes the earlier part file.
    func removeEarlier() {
        part?.earlier = nil
        if let place { services.storage.removeEarlier(place) }
    }

    /// Uses the journal of an earlier run. If this run may receive bytes over http although the URL is https, first
    /// records that in the journal.
    private func adopt(_ journal: any Journal) {
        var record = journal.record
        record.mayBePlain = record.mayBePlain || options.mayBringPlainBytes
        record.download = options.download ?? record.download
        update(record)
    }

    private func hold(_ place: Place, _ part: OpenPart) {
        if let item { services.names?.decided(item.number) }
        self.part = part
        self.place = place
    }

    /// Returns whether this download may resume an unfinished one: it is from the same URL, or the user allowed another
    /// URL (`DownloadOptions.ownsPart`).
    func isOurs(_ part: OpenPart) -> Bool {
        guard let other = part.journal?.record.source, relation(to: part) == .different else { return true }
        return ContinuationPolicy.isSame(other, as: options.url, isVouchedFor: options.vouchesForPart)
    }

    // MARK: The first response

    /// Creates the part file and its journal (the record of written bytes) for a response, or finds an existing file.
    ///
    /// - Parameter isAtHand: `true` if the whole body is in memory.
    func prepare(_ plan: PreparePlan, isAtHand: Bool) throws(TowlineError) -> Preparation {
        if plan.isReplacement, let old = part, let place {
            guard changes.isGuess, !(options.isNamed && policy(for: place).replacesOtherParts) else {
                try replace(old, at: place, plan)
                return .ready
            }
            try leaveOther(old, at: place)
        }
        guard case .file(let directory, let name) = options.target else { return .ready }
        if let name {
            let place = Place(directory: directory, name: name)
            return try open(place, plan, isAtHand: isAtHand, mayYield: false) ?? .ready
        }
        return waitsForName(plan) ? .needsName : try openNumbered(directory, plan, isAtHand: isAtHand)
    }

    /// Creates or opens the part file at one directory and file name for a response.
    ///
    /// - Returns: `nil` if another download uses the name, and `mayYield` allows this one to choose another name.
    func open(
        _ place: Place, _ plan: PreparePlan, isAtHand: Bool, mayYield: Bool
    ) throws(TowlineError) -> Preparation? {
        if try fill(place, plan, isAtHand: isAtHand) { return .ready }
        switch try look(at: place) {
        case .nothing(let notices):
            tell(notices)
        case .unfinished(let part):
            if mayYield, isOther(part, at: place, plan.representation) {
                trace("\(place.name).tow is of another URL or of another file -> use another name")
                part.sink.close()
                return nil
            }
            if try leaves(part, at: place, plan) { break }
            let isOther = !isOurs(part)
            guard let held = try take(part, at: place), !held.written.isEmpty, !isOther else {
                // It has no bytes that can be used: the body of this response replaces it.
                try replace(part, at: place, plan)
                return .ready
            }
            return .resume(held)
        case .finished(let file, let origin):
            let isThis = isThis(file, origin, plan.representation)
            if !isThis, mayYield { return nil }
            try decide(.finished(isThis: isThis), place, file, offered: plan)
        case .occupied(let file):
            try decide(.other(isFile: file != nil), place, file, offered: plan)
        }
        if proof != nil { return .needsProof }
        if outcome != nil { return .done }
        try create(place, plan, isAtHand: isAtHand)
        return .ready
    }

    /// Creates the part file at a directory and file name that were free less than a second ago, without another
    /// inspection. `create` detects a file that appeared meanwhile.
    ///
    /// - Returns: `false` if the place must be surveyed again; no file was created.
    private func fill(_ place: Place, _ plan: PreparePlan, isAtHand: Bool) throws(TowlineError) -> Bool {
        guard let vacancy, vacancy.place == place, services.now - vacancy.seen < .seconds(1) else { return false }
        self.vacancy = nil
        do throws(TowlineError) {
            try create(place, plan, isAtHand: isAtHand, requiresFreeName: true)
        } catch {
            guard error.code == .destinationBusy || error.code == .destinationExists else { throw error }
            return false
        }
        return true
    }

    private func create(
        _ place: Place, _ plan: PreparePlan, isAtHand: Bool, requiresFreeName: Bool = false
    ) throws(TowlineError) {
        let fresh = DownloadRecord(plan, of: key.link, at: place, generation: 1, options)
        // Take the place before a lockable file exists: two transfers of this process may get here at once.
        guard services.places.take(place, by: key.link.exact) else { throw .askedForTwice(place) }
        do throws(TowlineError) {
            var terms = CreateTerms(plan, options, key.link)
            terms.requiresFreeName = requiresFreeName
            terms.isAtHand = isAtHand
            // A body in memory is written at once, so no journal is needed.
            if isAtHand { terms.journaled = false }
            hold(place, try services.storage.create(place, record: fresh, terms: terms))
        } catch {
            services.places.leave(place, options.existing)
            throw error
        }
        record = fresh
        changes.isNew = true
        tell(part?.notices ?? [])
    }

    private func replace(_ old: OpenPart, at place: Place, _ plan: PreparePlan) throws(TowlineError) {
        let generation = (record?.generation ?? 0) + 1
        let next = DownloadRecord(plan, of: key.link, at: place, generation: generation, options)
        part = try services.storage.replace(
            old, place: place, record: next, terms: CreateTerms(plan, options, key.link))
        (changes.replacements, changes.isGuess) = (changes.replacements + 1, false)
        tell(part?.notices ?? [])
        record = next
    }

    // MARK: Later

    /// Stores in the journal what a response states about the file: its length, ETag, date and checksums.
    func learn(_ representation: Representation, _ checksums: [Checksum]) {
        guard var record else { return }
        record.representation = representation
        record.checksums = checksums
        update(record)
    }

    private func update(_ record: DownloadRecord) {
        self.record = record
        storing { () throws(TowlineError) in try part?.journal?.update(record) }
    }

    /// Performs an operation on the disk. If it fails, passes the error to the transfer as the event `storageFailed`.
    func storing(_ body: () throws(TowlineError) -> Void) {
        do throws(TowlineError) { try body() } catch { mailbox.post(.storage(.storageFailed(error), of: nil)) }
    }

    /// Renames a complete file with a wrong checksum to `NAME.tow-bad`, and stores its path in `changes.badPath`.
    func setAside() { storing { () throws(TowlineError) in changes.badPath = try part?.sink.setAside() } }

    /// Ends the use of the destination, so that other transfers of this process can use the same name. Returns the part
    /// file, which the caller must close; `nil` without one.
    func release() -> OpenPart? {
        guard let part else { return nil }
        self.part = nil
        if let place { services.places.leave(place, options.existing) }
        return part
    }
}
