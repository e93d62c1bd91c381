import Foundation
import Testing

@testable import TowlineService

/// The directory of the service's socket.
@Suite struct SocketDirectoryTests {
    /// A user with write access could replace the socket of the service.
    @Test(arguments: [(0o700, true), (0o755, true), (0o770, false), (0o757, false), (0o1777, false), (0o720, false)])
    func onlyTheOwnerMayWriteThere(_ mode: Int, _ isUsed: Bool) throws {
        let directory = FileManager.default.temporaryDirectory.appendingPathComponent("socket-" + UUID().uuidString)
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: directory) }
        #expect(chmod(directory.path, mode_t(mode)) == 0)
        let place = try? SocketPlace(directory.appendingPathComponent("s"))
        #expect((place != nil) == isUsed)
        place?.remove()
    }
}
