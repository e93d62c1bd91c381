import Synchronization
package import TowlineCore
package import TowlineEngine

/// The functions of `FileStorage` that publish a small file whose bytes are all in memory. Such a file has no name
/// until it is complete, and needs no lock, journal or `PartFile`.
extension FileStorage {
    package func publishAtOnce(
        _ small: SmallFile, at place: Place
    ) async throws(TowlineError) -> SmallFileOutcome {
        let length = small.body.held.count
        guard let (folder, names) = try? folders.enter(place), let file = try? fill(small, folder, names) else {
            return .declined
        }
        defer { file.close() }
        if small.durable, !folder.isInMemory {
            // Hundreds of files may wait for the disk, so their bytes must not be in memory twice.
            small.body.release()
            switch try await nameDurably(file, names.final, in: folder) {
            case true?: break
            case false?: return regain(length, from: file, small.body)
            // After a failed sync, the contents of the file are unknown.
            case nil: return .lost
            }
        } else {
            // A file system in memory needs no sync.
            guard (try? folder.name(file, names.final)) ?? false else { return .declined }
        }
        return .published(PublishedFile(path: folder.path(of: names.final), length: Int64(length)))
    }

    /// Reads the first `length` bytes of `file` back into `body`, because the file did not get its name. Returns
    /// `.declined` if that succeeds, so that the caller can store the bytes in another way; `.lost` if they cannot be
    /// read.
    private func regain(_ length: Int, from file: Descriptor, _ body: any BufferedBody) -> SmallFileOutcome {
        guard let bytes = try? file.read(length, at: 0), bytes.count == length else { return .lost }
        body.hold(bytes)
        return .declined
    }

    /// Creates a complete file that has no name yet. Returns `nil` if the file system does not support such files, or
    /// if another download has the part file's name. Throws if the space is not sufficient or a write fails.
    private func fill(
        _ small: SmallFile, _ folder: Folder, _ names: PlaceNames
    ) throws(TowlineError) -> Descriptor? {
        let bytes = small.body.held
        let part = names.part
        // `create` has the user's choice about this check.
        if space.hasPromises { try space.checkSpace(for: Int64(bytes.count), in: folder) }
        guard let file = try folder.createUnnamed(for: part) else { return nil }
        // Another process may have started this download since the directory was read, and then owns the place. A file
        // that has the final name by now is detected when this file gets its name.
        guard try folder.status(of: part) == nil else { return nil }
        try file.write(bytes, at: 0)
        try FinishedMark.put(
            on: file, source: small.link.text, link: small.link, length: Int64(bytes.count), modified: small.modified,
            version: small.version, under: small.durable ? nil : folder.boot(boot))
        return file
    }

    /// Syncs the file, names it and syncs the name, together with files that arrive at the same time (`SyncQueue`).
    ///
    /// - Returns: `true` if the file has its name; `false` if the name is taken or the system refuses to name the file;
    ///   `nil` if the sync of the file failed, so that the name was not given.
    /// - Throws: if the sync of the directory failed: the name may not survive a power loss.
    private func nameDurably(_ file: Descriptor, _ name: String, in folder: Folder) async throws(TowlineError) -> Bool?
    {
        let isNamed = Mutex(Bool?.none)
        let naming = SyncQueue.Naming(folder: folder.descriptor, isFirst: true) {
            let isGiven = (try? folder.name(file, name)) ?? false
            isNamed.withLock { $0 = isGiven }
            return isGiven
        }
        let outcome = await queue.publish(file, naming, device: folder.identity.device, callerMayWait: true)
        let isGiven = isNamed.withLock { $0 }
        guard isGiven == true else { return isGiven }
        guard outcome.folder >= 0 else {
            throw .naming(folder.path(of: name), because: .synchronizing(folder.path, -outcome.folder))
        }
        return true
    }
}
