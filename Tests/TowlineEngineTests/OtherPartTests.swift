import FaultServer
import Testing
import TowlineCore
import TransferSimulation

/// Tests a download whose name, chosen by the user, an unfinished download of another URL has.
@Suite("A part file of another URL") struct OtherPartTests {
    @Test(
        "is replaced only if the user wants that",
        arguments: [ExistingPolicy.fail, .rename, .update, .overwrite], ["?v=2", "?key=2", "?token=2"])
    func policies(_ policy: ExistingPolicy, _ query: String) throws {
        let (old, new) = (Version(seed: 1, length: 3_000_000), Version(seed: 2, length: 2_500_000))
        let site = SimulatedSite(Resource(old))
        try site.interrupt(after: 2_000_000)
        site.server.replace(SimulatedSite.path, with: new)
        let outcome = try site.download(SimulatedSite.path + query) { $0.existing = policy }
        guard policy != .overwrite else {
            #expect(outcome.succeeded, "\(outcome.message)")
            #expect(site.published([new]) != nil)
            return
        }
        #expect(outcome.code == .destinationExists, "\(outcome.message)")
        #expect(site.storage.versions.contains { $0.count >= 2_000_000 })
        #expect(site.published([new]) == nil)
    }
}
