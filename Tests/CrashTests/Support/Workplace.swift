import FaultServer
import Glibc
import TowlineDisk

/// A directory for one test, gone with it.
final class Workplace: Sendable {
    let path: String

    init() throws {
        var template = Array("/tmp/tow-crash-XXXXXX".utf8CString)
        guard mkdtemp(&template) != nil else { throw Failure(code: errno) }
        path = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    struct Failure: Error { let code: Int32 }

    deinit {
        clear()
        rmdir(path)
    }

    func file(_ name: String) -> String { path + "/" + name }

    func has(_ name: String) -> Bool { access(file(name), F_OK) == 0 }

    /// Whether a small file here has no name before its final one: ext4, XFS, tmpfs.
    var keepsUnnamedFiles: Bool {
        let directory = open(path, O_RDONLY | O_DIRECTORY)
        defer { close(directory) }
        var space = FileSystemSpace()
        _ = SystemCalls().space(directory, &space)
        return [0xEF53, 0x5846_5342, 0x0102_1994].contains(space.type & 0xFFFF_FFFF)
    }

    /// Removes every file in it.
    func clear() {
        for name in names { unlink(file(name)) }
    }

    var names: [String] {
        guard let stream = opendir(path) else { return [] }
        defer { closedir(stream) }
        var names: [String] = []
        while let entry = readdir(stream) {
            let name = withUnsafeBytes(of: &entry.pointee.d_name) { bytes in
                String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
            }
            if name != "." && name != ".." { names.append(name) }
        }
        return names.sorted()
    }

    /// What is wrong with the finished file of that name; `nil` if it is right and nothing is left beside it.
    func problem(_ name: String, _ version: Version) -> String? {
        let place: Int64?
        do {
            place = try version.content.firstMismatch(inFile: file(name), length: version.length)
        } catch {
            return "\(name): \(error); there is \(names)"
        }
        if let place { return "\(name) is wrong at \(place)" }
        let left = names.filter { $0.hasPrefix(name + ".") }
        return left.isEmpty ? nil : "left beside \(name): \(left)"
    }
}

/// How much is done: a little for every build, everything when asked to.
enum Torture {
    /// TOWLINE_TORTURE is set.
    static let isOn = getenv("TOWLINE_TORTURE") != nil

    /// A number from the environment.
    static func number(_ name: String) -> Int? { getenv(name).flatMap { Int(String(cString: $0)) } }

    /// One or the other.
    static func pick<Value>(_ usual: Value, _ torture: Value) -> Value { isOn ? torture : usual }
}
