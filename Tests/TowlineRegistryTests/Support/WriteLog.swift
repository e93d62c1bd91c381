/// The file operations of a process in one directory and its output, as recorded by `strace`.
struct WriteLog {
    enum Event {
        case create(String)
        case write(String, offset: Int, [UInt8])
        case truncate(String, Int)
        case synchronize(String)
        case synchronizeDirectory
        case rename(String, String)
        case unlink(String)
        /// A line on standard output.
        case say(String)
    }

    /// Returns the arguments of `strace`, which precede the program and its arguments.
    static func arguments(output: String) -> [String] {
        [
            "-f", "-xx", "-s", "200000", "-o", output, "-e",
            "trace=openat,pwrite64,write,ftruncate,fsync,fdatasync,rename,unlink",
        ]
    }

    private(set) var events: [Event] = []
    private let directory: String
    private var files: [Int: String] = [:]
    private var known: Set<String>

    /// Reads a trace. `names` are the files that existed in the directory before.
    init(_ trace: [UInt8], directory: String, names: Set<String>) {
        self.directory = directory
        known = names
        var unfinished: [ArraySlice<UInt8>: [UInt8]] = [:]
        let marker = Array(" <unfinished ...>".utf8)
        for line in trace.split(separator: 0x0A) {
            guard let space = line.firstIndex(of: 0x20) else { continue }
            let process = line[..<space]
            var rest = Array(line[space...].drop { $0 == 0x20 })
            if rest.suffix(marker.count).elementsEqual(marker) {
                unfinished[process] = Array(rest.dropLast(marker.count))
                continue
            }
            if rest.starts(with: Array("<... ".utf8)), let end = rest.firstIndex(of: 0x3E) {
                rest = (unfinished.removeValue(forKey: process) ?? []) + rest[(end + 1)...]
            }
            read(rest)
        }
    }

    private mutating func read(_ line: [UInt8]) {
        guard let open = line.firstIndex(of: 0x28), let equals = line.lastIndex(of: 0x3D) else { return }
        let call = String(decoding: line[..<open], as: UTF8.self)
        let words = String(decoding: line[(equals + 1)...], as: UTF8.self).split(separator: " ")
        guard let result = words.first.flatMap({ Int($0) }), result >= 0 else { return }
        let strings = WriteLog.strings(line[open...])
        // Reads the numbers after the last string, or all numbers if there is no string.
        let start = line.lastIndex(of: 0x22) ?? open
        let numbers = String(decoding: line[start..<equals], as: UTF8.self)
            .split { !($0.isNumber || $0 == "-") }.compactMap { Int($0) }
        let first =
            Int(
                String(decoding: line[(open + 1)...].prefix { $0 >= 0x30 && $0 <= 0x39 }, as: UTF8.self)) ?? -1
        switch call {
        case "openat": opened(strings.first ?? [], result)
        case "write" where first == 1:
            events.append(.say(String(decoding: (strings.first ?? []).dropLast(), as: UTF8.self)))
        case "write": written(first, nil, strings.first ?? [])
        case "pwrite64": written(first, numbers.last, strings.first ?? [])
        case "ftruncate": if let name = tracked(first) { events.append(.truncate(name, numbers.last ?? 0)) }
        case "fsync", "fdatasync":
            if files[first] == "" { events.append(.synchronizeDirectory) }
            if let name = tracked(first) { events.append(.synchronize(name)) }
        case "rename":
            guard let from = name(strings[0]), let to = name(strings[1]) else { return }
            if known.remove(from) != nil { known.insert(to) }
            events.append(.rename(from, to))
        case "unlink":
            guard let name = name(strings[0]) else { return }
            known.remove(name)
            events.append(.unlink(name))
        default: break
        }
    }

    private mutating func opened(_ path: [UInt8], _ file: Int) {
        files[file] = path == Array(directory.utf8) ? "" : name(path)
        guard let name = tracked(file), known.insert(name).inserted else { return }
        events.append(.create(name))
    }

    private mutating func written(_ file: Int, _ offset: Int?, _ bytes: [UInt8]) {
        guard let name = tracked(file) else { return }
        // A write without an offset appends. Only the list of directories is written in this way.
        events.append(.write(name, offset: offset ?? -1, bytes))
    }

    /// Returns the name of a file. Ignores the shared memory file, a cache of the log that does not survive a power
    /// failure.
    private func tracked(_ file: Int) -> String? {
        guard let name = files[file], !name.isEmpty, !name.hasSuffix("-shm") else { return nil }
        return name
    }

    private func name(_ path: [UInt8]) -> String? {
        let path = String(decoding: path, as: UTF8.self)
        return path.hasPrefix(directory + "/") ? String(path.dropFirst(directory.utf8.count + 1)) : nil
    }

    /// Returns the quoted strings of a line, whose bytes are all in the form `\xNN`.
    private static func strings(_ line: ArraySlice<UInt8>) -> [[UInt8]] {
        line.withUnsafeBufferPointer { line in
            var strings: [[UInt8]] = []
            var index = 0
            while index < line.count {
                guard line[index] == 0x22 else {
                    index += 1
                    continue
                }
                index += 1
                var bytes: [UInt8] = []
                while index < line.count, line[index] != 0x22 {
                    bytes.append(digit(line[index + 2]) << 4 | digit(line[index + 3]))
                    index += 4
                }
                strings.append(bytes)
                index += 1
            }
            return strings
        }
    }

    private static func digit(_ byte: UInt8) -> UInt8 { byte >= 0x61 ? byte - 0x57 : byte - 0x30 }
}
