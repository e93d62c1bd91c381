import TowlineCore
import TowlineEngine

extension Registry {
    /// Updates the name, size and progress of interrupted downloads in the registry from their journals, which are
    /// newer.
    func reconcile(with files: any DownloadFiles) async throws(TowlineError) {
        var query = DownloadQuery()
        query.filters = [.active, .waiting]
        repeat {
            let page = try await page(query)
            let held = await files.held(page.downloads)
            try await apply(
                zip(page.downloads, held).compactMap { record, held in held.map { RegistryChange(record, $0) } })
            query.cursor = page.next
        } while query.cursor != nil
    }
}

extension RegistryChange {
    /// Creates the change that copies the name, size and progress in a journal to the registry entry of its download.
    fileprivate init(_ record: RegisteredDownload, _ journal: JournalSummary) {
        self.init(record.id)
        if record.name != journal.name { name = journal.name }
        heldBytes = journal.heldBytes
        if let length = journal.completeLength { completeLength = .some(length) }
    }
}
