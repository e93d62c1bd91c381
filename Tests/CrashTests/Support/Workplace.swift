import FaultServer
import Glibc
import TowlineDisk

/// A temporary directory for one test, which is deleted when the object is released.
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

    /// Returns whether the file system lets a small file have no name before its final name: ext4, XFS, tmpfs.
    var keepsUnnamedFiles: Bool {
        let directory = open(path, O_RDONLY | O_DIRECTORY)
        defer { close(directory) }
        var space = FileSystemSpace()
        _ = SystemCalls().space(directory, &space)
        return [0xEF53, 0x5846_5342, 0x0102_1994].contains(space.type & 0xFFFF_FFFF)
    }

    /// Deletes every file in the directory.
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

    /// Returns a problem with a finished file, or `nil` if the file is correct and no other files of the download
    /// exist.
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

/// The extent of the tests: short for every build, complete with `TOWLINE_TORTURE`.
enum Torture {
    /// `true` if `TOWLINE_TORTURE` is set.
    static let isOn = getenv("TOWLINE_TORTURE") != nil

    /// Returns a number from an environment variable; `nil` if the variable is not a number.
    static func number(_ name: String) -> Int? { getenv(name).flatMap { Int(String(cString: $0)) } }

    /// Returns `torture` if `isOn` is `true`, otherwise `usual`.
    static func pick<Value>(_ usual: Value, _ torture: Value) -> Value { isOn ? torture : usual }
}
