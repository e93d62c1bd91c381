import Synchronization
package import TowlineCore
package import TowlineEngine

/// Small files whose bytes are all there: without a name until they are whole, and without a lock, a journal or a
/// `PartFile`.
extension FileStorage {
    package func publishAtOnce(
        _ small: SmallFile, at place: Place
    ) async throws(TowlineError) -> PublishedFile? {
        guard let (folder, names) = try? enter(place), let file = try? fill(small, folder, names) else { return nil }
        defer { file.close() }
        // In memory there is nothing to wait for.
        let isNamed =
            small.durable && !folder.isInMemory
            ? try await nameDurably(file, names.final, in: folder)
            : (try? folder.name(file, names.final)) ?? false
        guard isNamed else { return nil }
        index(of: folder).gave(names.final)
        return PublishedFile(path: folder.path(of: names.final), length: Int64(small.bytes.count))
    }

    /// A file without a name, with everything that it is to have; `nil` where it cannot be had, or is not to be.
    private func fill(
        _ small: SmallFile, _ folder: Folder, _ names: PlaceNames
    ) throws(TowlineError) -> Descriptor? {
        let part = names.part
        guard let file = try folder.createUnnamed(mode: 0o666, for: part) else { return nil }
        // Another process may have begun this download since the directory was read: the place is its own then. Who has
        // the final name by now is found when it is given.
        guard try folder.status(of: part) == nil else { return nil }
        try file.write(small.bytes, at: 0)
        try FinishedMark.put(
            on: file, source: small.source, length: Int64(small.bytes.count), modified: small.modified,
            under: small.durable ? nil : folder.boot(boot))
        return file
    }

    /// Syncs the file, gives it its name and syncs that, with those that come at the same time (`SyncQueue`).
    ///
    /// - Returns: whether it has the name. If not the sync failed, or the name is taken, and nothing is there.
    private func nameDurably(_ file: Descriptor, _ name: String, in folder: Folder) async throws(TowlineError) -> Bool {
        let isNamed = Mutex(false)
        let naming = SyncQueue.Naming(folder: folder.descriptor, isFirst: true) {
            let isGiven = (try? folder.name(file, name)) ?? false
            isNamed.withLock { $0 = isGiven }
            return isGiven
        }
        let outcome = await queue.publish(file, naming, device: folder.identity.device, callerMayWait: true)
        guard isNamed.withLock({ $0 }) else { return false }
        guard outcome.folder >= 0 else {
            throw .naming(folder.path(of: name), because: .synchronizing(folder.path, -outcome.folder))
        }
        return true
    }
}
