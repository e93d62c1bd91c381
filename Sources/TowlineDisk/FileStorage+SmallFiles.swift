import Synchronization
package import TowlineCore
package import TowlineEngine

/// Small files whose bytes are all there: without a name until they are whole, and without a lock, a journal or a
/// `PartFile`.
extension FileStorage {
    package func publishAtOnce(
        _ small: SmallFile, at place: Place
    ) async throws(TowlineError) -> SmallFileOutcome {
        let length = small.body.held.count
        guard let (folder, names) = try? enter(place), let file = try? fill(small, folder, names) else {
            return .declined
        }
        defer { file.close() }
        if small.durable, !folder.isInMemory {
            // Of hundreds that wait for the disk none is in memory twice.
            small.body.release()
            switch try await nameDurably(file, names.final, in: folder) {
            case true?: break
            case false?: return regain(length, from: file, small.body)
            // What a file holds of which a sync has failed nobody can say.
            case nil: return .lost
            }
        } else {
            // In memory there is nothing to wait for.
            guard (try? folder.name(file, names.final)) ?? false else { return .declined }
        }
        index(of: folder).gave(names.final)
        return .published(PublishedFile(path: folder.path(of: names.final), length: Int64(length)))
    }

    /// The file goes without a name: its bytes are read back.
    private func regain(_ length: Int, from file: Descriptor, _ body: any HeldBytes) -> SmallFileOutcome {
        guard let bytes = try? file.read(length, at: 0), bytes.count == length else { return .lost }
        body.hold(bytes)
        return .declined
    }

    /// A file without a name, with everything that it is to have; `nil` where it cannot be had, or is not to be.
    private func fill(
        _ small: SmallFile, _ folder: Folder, _ names: PlaceNames
    ) throws(TowlineError) -> Descriptor? {
        let bytes = small.body.held
        let part = names.part
        // `create` knows if the user wants the check.
        if space.hasPromises { try space.checkSpace(for: Int64(bytes.count), in: folder) }
        guard let file = try folder.createUnnamed(for: part) else { return nil }
        // Another process may have begun this download since the directory was read: the place is its own then. Who has
        // the final name by now is found when it is given.
        guard try folder.status(of: part) == nil else { return nil }
        try file.write(bytes, at: 0)
        try FinishedMark.put(
            on: file, source: small.source, length: Int64(bytes.count), modified: small.modified,
            version: small.version, under: small.durable ? nil : folder.boot(boot))
        return file
    }

    /// Syncs the file, gives it its name and syncs that, with those that come at the same time (`SyncQueue`).
    ///
    /// - Returns: whether it has the name, which may be taken; `nil` if its sync failed. Nothing is there then.
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
