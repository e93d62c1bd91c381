import TowlineCore
import TowlineEngine

/// The publication of snapshots of downloads.
extension DownloadCenter {
    /// Publishes the current snapshot of a download to the readers of its snapshots and events. Has no effect if the
    /// registry does not contain the download.
    func publish(_ id: DownloadID) async { await publish([id]) }

    /// Publishes a change of many downloads: one event `listChanged`, and a snapshot of each download that has a
    /// snapshot stream.
    func publishList() async {
        guard hub.hasReaders else { return }
        await publish(hub.followed)
        hub.publish(.listChanged)
    }

    private func publish(_ ids: [DownloadID]) async {
        guard hub.hasReaders, let records = try? await registry.downloads(ids) else { return }
        let held = await list.held(records)
        // Reading a journal takes time. The last published snapshot must be the newest.
        guard let records = try? await registry.downloads(ids) else { return }
        for record in records { hub.publish(list.snapshot(of: record, held: held[record.id] ?? nil)) }
    }
}
