import Foundation
import TowlineDisk
import TowlineEngine

/// The file systems on which downloads were stored, by mount point, from the list of downloads. With them, a new
/// download detects that the disk of its directory is not mounted. They stay in the list when downloads are removed.
struct KnownDisks {
    private static let prefix = "disk/"
    private let registry: any Registry
    private let files: any DownloadFiles
    private var disks: [String: FileSystemIdentity] = [:]

    /// Reads the known file systems from the list.
    init(registry: any Registry, files: any DownloadFiles) async {
        (self.registry, self.files) = (registry, files)
        for (name, text) in (try? await registry.values(prefix: Self.prefix)) ?? [:] {
            let disk = try? JSONDecoder().decode(FileSystemIdentity.self, from: Data(text.utf8))
            disks[String(name.dropFirst(Self.prefix.count))] = disk
        }
    }

    /// Returns the known file system of a directory if it is not mounted; `nil` if it or another one is mounted, or if
    /// no file system is known.
    ///
    /// - Parameter found: the file system at the path of the directory now.
    func missing(at directory: String, _ found: FileSystemIdentity) async -> FileSystemIdentity? {
        for (path, disk) in covering(directory) where found.isMounted(above: path) {
            if let now = await files.fileSystem(path), !now.identity.isSame(as: disk) { return disk }
        }
        return nil
    }

    /// Stores the file system `found` of a directory. If the list cannot be written, the next addition stores it.
    mutating func remember(_ found: FileSystemIdentity, of directory: String) async {
        guard let mountPoint = found.mountPoint, let mount = await files.fileSystem(mountPoint)?.identity else {
            return
        }
        // A symbolic link leads to a directory below another mount point.
        let isBelow = (mount.type, mount.id) == (found.type, found.id)
        let (path, disk) = isBelow ? (mountPoint, mount) : (directory, found)
        guard path != "/", disks[path] != disk, let text = try? JSONEncoder().encode(disk) else { return }
        disks[path] = disk
        try? await registry.setValue(String(decoding: text, as: UTF8.self), for: Self.prefix + path)
    }

    /// Removes the file systems of a directory, because the user stores its downloads on another one.
    func forget(_ directory: String) async {
        for (path, _) in covering(directory) { try? await registry.setValue(nil, for: Self.prefix + path) }
    }

    /// Returns the file systems of a directory and of its parents, the nearest one first.
    private func covering(_ directory: String) -> [(key: String, value: FileSystemIdentity)] {
        disks.filter { directory == $0.key || directory.hasPrefix($0.key + "/") }.sorted { $0.key.count > $1.key.count }
    }
}
