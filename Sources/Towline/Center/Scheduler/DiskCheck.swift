import TowlineCore
import TowlineEngine

/// Checks whether the disk of a waiting download allows it to continue.
struct DiskCheck {
    let registry: any Registry
    let files: any DownloadFiles

    /// Returns whether the disk still keeps a waiting download from running, so that no server is asked in vain.
    func blocks(_ id: DownloadID, _ code: WaitCode) async -> Bool {
        guard let record = try? await registry.download(id) else { return false }
        if code == .destination { return await !files.isWritable(record) }
        guard let length = record.completeLength, let free = await files.freeSpace(record.directory) else {
            return false
        }
        return free < max(length - record.heldBytes, 1 << 20)
    }
}
