import Glibc
import TowlineCore
import TowlineEngine

@testable import TowlineRegistry

/// A temporary directory for one test, which is deleted when the object is released.
final class TemporaryState {
    let path: String
    var directory: String { path + "/state" }
    var database: String { directory + "/registry.sqlite" }

    init() {
        var template = Array("/tmp/towline-registry-XXXXXX".utf8CString)
        path = String(cString: mkdtemp(&template))
    }

    deinit { removeTree(path) }

    func open(rebuild: @escaping SQLiteRegistry.Rebuild = { _ in [] }) async throws -> SQLiteRegistry {
        try await SQLiteRegistry.open(stateDirectory: directory, rebuild: rebuild)
    }

    /// The names in the state directory.
    var names: [String] { listNames(directory) }
    /// Returns the bytes of a file in the state directory.
    func bytes(_ name: String) -> [UInt8] { readFile(directory + "/" + name) }

    func mode(_ name: String) -> UInt32 {
        var status = stat()
        guard lstat(name.isEmpty ? directory : directory + "/" + name, &status) == 0 else { return 0 }
        return status.st_mode & 0o7777
    }
}

func listNames(_ path: String) -> [String] {
    guard let stream = opendir(path) else { return [] }
    defer { closedir(stream) }
    var names: [String] = []
    while let entry = readdir(stream) {
        let name = withUnsafeBytes(of: &entry.pointee.d_name) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
        if name != ".", name != ".." { names.append(name) }
    }
    return names.sorted()
}

func removeTree(_ path: String) {
    for name in listNames(path) {
        let inner = path + "/" + name
        if unlink(inner) != 0 { removeTree(inner) }
    }
    rmdir(path)
}

func readFile(_ path: String) -> [UInt8] {
    let file = open(path, O_RDONLY | O_CLOEXEC)
    guard file >= 0 else { return [] }
    defer { close(file) }
    var bytes: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 1 << 20)
    while true {
        let count = read(file, &buffer, buffer.count)
        guard count > 0 else { return bytes }
        bytes += buffer.prefix(count)
    }
}

func writeFile(_ path: String, _ bytes: [UInt8], mode: UInt32 = 0o600) {
    let file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode)
    var rest = bytes[...]
    while !rest.isEmpty {
        let count = rest.withUnsafeBytes { write(file, $0.baseAddress, $0.count) }
        guard count > 0 else { break }
        rest = rest.dropFirst(count)
    }
    close(file)
}

/// A generator of random numbers that are the same in each run.
struct SeededGenerator: RandomNumberGenerator {
    private var state: UInt64
    init(seed: UInt64) { state = seed }

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var word = state
        word = (word ^ (word >> 30)) &* 0xBF58_476D_1CE4_E5B9
        word = (word ^ (word >> 27)) &* 0x94D0_49BB_1331_11EB
        return word ^ (word >> 31)
    }
}

/// Sample downloads. The same number always results in the same download.
enum Sample {
    static func id(_ number: Int) -> DownloadID {
        DownloadID(milliseconds: 1_700_000_000_000 + UInt64(number), random: (7, UInt64(number)))
    }

    static func download(
        _ number: Int, host: String? = nil, group: String? = nil, priority: Int = 0, name: String? = nil
    ) -> RegisteredDownload {
        let host = host ?? "https://host-\(number % 7).example:443"
        let source = "\(host)/files/\(number).iso?X-Amz-Signature=secret\(number)&part=\(number)"
        return RegisteredDownload(
            id: id(number), source: source, host: host, directory: "/downloads/\(number % 5)",
            name: name ?? "File \(number).iso", identity: "\(source) to /downloads/\(number % 5)",
            options: Array("options \(number)".utf8), metadata: number % 3 == 0 ? ["mine": "\(number)"] : [:],
            group: group, priority: priority, addedAt: 1_700_000_000_000 + Int64(number))
    }
}

/// Returns all downloads of a registry.
func allDownloads(_ registry: SQLiteRegistry) async throws -> [RegisteredDownload] {
    var query = DownloadQuery()
    query.limit = 10_000
    return try await registry.page(query).downloads
}
