import Glibc
import Synchronization
package import TowlineCore
package import TowlineEngine

/// The functions of `PartFile` that give the complete file its final name so that a crash at any step loses nothing.
extension PartFile {
    /// Publishes the file: sets length and date, stores the mark of a finished download (an extended attribute), syncs,
    /// renames, syncs the directory, removes the journal.
    ///
    /// `FileStorage.survey` completes the steps after a crash between any two of them. The sync is `fsync`, not
    /// `fdatasync`: the date and the mark must be durable, too.
    package func publish(_ terms: PublishTerms) async throws(TowlineError) -> PublishedFile {
        try folder.refuseUnfinished(names.final, boot: boot)
        if terms.existing == .skip, let present = try folder.status(of: names.final) {
            discard()
            return PublishedFile(path: folder.path(of: names.final), length: present.size, isForeign: true)
        }
        // A file that replaces another one must be durable under a name first.
        if terms.existing.replaces { try appear() }
        let mark = try complete(terms, try intactLength())
        // For a copied part file, the journal must have its identity: after a crash, the next run finds the published
        // file by it.
        if isForeign { try journal?.adopt(file.identity()) }
        let isQueued = terms.durable && !(journal == nil && folder.isInMemory)
        let given = isQueued ? try await nameDurably(terms, mark) : try name(terms, mark)
        guard let name = given else {
            let present = try folder.status(of: names.final)
            discard()
            return PublishedFile(path: folder.path(of: names.final), length: present?.size ?? 0, isForeign: true)
        }
        try await journal?.retireWaiting(as: .void)
        if hasTwin.load(ordering: .acquiring) { discard() } else { close() }
        displaced.restore(in: folder)
        return PublishedFile(path: folder.path(of: name), length: terms.length)
    }

    /// Syncs the file, gives it its final name, and syncs the directory. Returns the final name; `nil` if another file
    /// has it and must stay (`ExistingPolicy.skip`).
    ///
    /// If the last step fails, the file is complete, durable and has its name, which may not survive a power loss. The
    /// name stays: removing it would be no more durable than adding it. The journal stays, too, and identifies the file
    /// under either name; the next run syncs the directory before it reports the download as finished.
    private func nameDurably(_ terms: PublishTerms, _ mark: FinishedMark) async throws(TowlineError) -> String? {
        let before = file.failedSyncs.load(ordering: .acquiring)
        let answer = Mutex<Result<String?, TowlineError>?>(nil)
        let naming = SyncQueue.Naming(folder: folder.descriptor, isFirst: !hasName) {
            // As in `synchronize`: if another sync failed since this one began, its success does not count.
            guard self.file.failedSyncs.load(ordering: .acquiring) == before else { return false }
            let result = Result { () throws(TowlineError) in try self.name(terms, mark) }
            answer.withLock { $0 = result }
            return (try? result.get()) != nil
        }
        // The transfer's own task publishes a small file; the last sync of a long file may take long, on any thread.
        let outcome = await queue.publish(
            file, naming, device: folder.identity.device, callerMayWait: journal == nil)
        guard let result = answer.withLock({ $0 }) else {
            journal?.forgetWhatIsNotDurable()
            throw .synchronizing(file.path, outcome.file < 0 ? -outcome.file : EIO)
        }
        guard let name = try result.get() else { return nil }
        guard outcome.folder >= 0 else {
            throw .naming(folder.path(of: name), because: .synchronizing(folder.path, -outcome.folder))
        }
        return name
    }

    /// Sets the final length, date and permission bits, and stores and returns the mark that identifies a finished
    /// download. Throws `diskFailure` if bytes are missing or may not have been saved.
    private func complete(_ terms: PublishTerms, _ length: Int64) throws(TowlineError) -> FinishedMark {
        if journal?.written.contains(ByteRange(0, terms.length)) ?? true { try checkIntact(upTo: terms.length) }
        guard length >= terms.length, !mayLackBytes(upTo: terms.length) else {
            throw TowlineError(
                .diskFailure,
                "\(file.path) is incomplete: some bytes are missing or were not saved. "
                    + "Start the download again to fetch these bytes")
        }
        if length > terms.length { try file.truncate(to: terms.length) }
        // A file without a name was created with its final permission bits.
        if hasName {
            FileMode.open(file, replacing: try replacedFile(terms), in: folder)
        }
        return try FinishedMark.put(
            on: file, source: source, link: terms.link, length: terms.length, modified: terms.modified,
            version: terms.version, under: terms.durable ? nil : folder.boot(boot), isPending: hasName && journal == nil
        )
    }

    /// Gives the file its final name, then clears the bit in its mark that identifies it as a part file.
    ///
    /// - Returns: the name; `nil` if another file has the name and must stay.
    private func name(_ terms: PublishTerms, _ mark: FinishedMark) throws(TowlineError) -> String? {
        try checkIntact(upTo: terms.length)
        guard let name = try rename(terms) else { return nil }
        if mark.isPending { mark.named.store(in: file) }
        return name
    }

    private func rename(_ terms: PublishTerms) throws(TowlineError) -> String? {
        switch existing(terms) {
        case .overwrite, .update:
            // The replaced file disappears for all of its readers and writers, so pipes, devices and links are refused.
            let replaced = try replacedFile(terms)
            switch replaced?.kind {
            case .other: throw .unusable(folder.path(of: names.final))
            case .link: throw .link(folder.path(of: names.final))
            default: break
            }
            try folder.rename(names.part, over: names.final)
            FileMode.keepReadOnly(file, like: replaced)
            return names.final
        case .skip:
            return try give(names.final) ? names.final : nil
        case .fail:
            guard try give(names.final) || isTwin(names.final, terms.length) else {
                // The message says that the bytes are kept, so the file needs a name.
                try appear()
                throw .occupied(folder.path(of: names.final))
            }
            return names.final
        case .rename:
            for number in 0..<10_000 {
                let name = names.numbered(number)
                if try give(name) || isTwin(name, terms.length) { return name }
            }
            throw .occupied(folder.path(of: names.final))
        }
    }

    /// Returns the policy for the file that has the final name now.
    private func existing(_ terms: PublishTerms) -> ExistingPolicy {
        let others = terms.existing.forOtherFiles(isUsersName: terms.isUsersName)
        guard others != terms.existing, let file = try? folder.open(names.final, readOnly: true),
            let mark = FinishedMark(of: file, boot: folder.boot(boot))
        else { return others }
        return (terms.link.map { mark.relation(to: $0) != .different } ?? mark.isOf(source)) ? terms.existing : others
    }

    /// Returns the status of the existing file that this file replaces, with the permission bits that this file keeps;
    /// `nil` if it replaces none.
    private func replacedFile(_ terms: PublishTerms) throws(TowlineError) -> FileStatus? {
        guard existing(terms).replaces, var status = try folder.status(of: names.final) else { return nil }
        if !terms.isUsersName { status.mode &= ~0o111 }
        return status
    }

    /// Returns whether the existing file under `name` comes from the same URL and has the same bytes: another process
    /// completed the same download first. `false` if this file has a journal; the part file of a long file is locked,
    /// so no other process had it.
    private func isTwin(_ name: String, _ length: Int64) -> Bool {
        guard journal == nil, let other = try? folder.open(name, readOnly: true),
            let mark = FinishedMark(of: other, boot: folder.boot(boot)), mark.isOf(source), mark.length == length,
            file.hasSameBytes(as: other, length: length)
        else { return false }
        hasTwin.store(true, ordering: .releasing)
        return true
    }
}

extension Descriptor {
    /// Returns whether this file and another have the same first `length` bytes; `false` if one of them cannot be read.
    fileprivate func hasSameBytes(as other: Descriptor, length: Int64) -> Bool {
        withUnsafeTemporaryAllocation(byteCount: 128 << 10, alignment: 16) { buffer in
            let (own, others) = (buffer[..<(64 << 10)], buffer[(64 << 10)...])
            var offset: Int64 = 0
            while offset < length {
                let count = Int(min(Int64(own.count), length - offset))
                let first = UnsafeMutableRawBufferPointer(rebasing: own.prefix(count))
                let second = UnsafeMutableRawBufferPointer(rebasing: others.prefix(count))
                guard (try? read(into: first, at: offset)) == count,
                    (try? other.read(into: second, at: offset)) == count,
                    first.elementsEqual(second)
                else { return false }
                offset += Int64(count)
            }
            return true
        }
    }
}
