/// A simulated directory after the first events of a log and a power failure. Synced data is kept. Any part of the
/// other data may be kept, in sectors of 512 bytes.
struct ReplayedDisk {
    /// A file: its durable bytes, and the changes since the last sync.
    private struct File {
        var durable: [UInt8]
        var pending: [Change] = []
    }

    private enum Change {
        case write(Int, [UInt8])
        case truncate(Int)
    }

    /// The files. Names refer to files by index, so that a rename changes the name and not the bytes.
    private var files: [File] = []
    private var names: [String: Int] = [:]
    private var durableNames: [String: Int] = [:]
    private var nameChanges: [(from: String?, to: String?, file: Int)] = []
    /// The name of the file whose syncs are ignored, to show that they are needed; `nil` for none.
    private let unsynced: String?

    init(_ base: [String: [UInt8]], ignoringSyncsOf unsynced: String? = nil) {
        self.unsynced = unsynced
        for (name, bytes) in base {
            names[name] = files.count
            files.append(File(durable: bytes))
        }
        durableNames = names
    }

    mutating func apply(_ event: WriteLog.Event) {
        switch event {
        case .create(let name):
            names[name] = files.count
            nameChanges.append((nil, name, files.count))
            files.append(File(durable: []))
        case .write(let name, let offset, let bytes):
            guard let file = names[name] else { return }
            let end = offset >= 0 ? offset : length(file)
            files[file].pending.append(.write(end, bytes))
        case .truncate(let name, let length):
            guard let file = names[name] else { return }
            files[file].pending.append(.truncate(length))
        case .synchronize(let name):
            guard let file = names[name], name != unsynced else { return }
            for change in files[file].pending { ReplayedDisk.perform(change, on: &files[file].durable) }
            files[file].pending = []
        case .synchronizeDirectory:
            durableNames = names
            nameChanges = []
        case .rename(let from, let to):
            guard let file = names.removeValue(forKey: from) else { return }
            names[to] = file
            nameChanges.append((from, to, file))
        case .unlink(let name):
            guard let file = names.removeValue(forKey: name) else { return }
            nameChanges.append((name, nil, file))
        case .say: break
        }
    }

    private func length(_ file: Int) -> Int {
        var length = files[file].durable.count
        for change in files[file].pending {
            switch change {
            case .write(let offset, let bytes): length = max(length, offset + bytes.count)
            case .truncate(let count): length = count
            }
        }
        return length
    }

    /// Returns a random state of the directory after a power failure at this point.
    func strike(_ generator: inout SeededGenerator) -> [String: [UInt8]] {
        // A file system with ordered metadata keeps a prefix of the name changes. Other file systems keep any of them.
        var bound = durableNames
        let isOrdered = Bool.random(using: &generator)
        let kept = Int.random(in: 0...nameChanges.count, using: &generator)
        for (index, change) in nameChanges.enumerated() {
            guard isOrdered ? index < kept : Bool.random(using: &generator) else { continue }
            if let from = change.from, bound[from] == change.file { bound[from] = nil }
            if let to = change.to { bound[to] = change.file }
        }
        let mood = Int.random(in: 0..<4, using: &generator)
        return bound.mapValues { file in
            var bytes = files[file].durable
            for change in files[file].pending {
                switch mood {
                case 0: continue
                case 1: ReplayedDisk.perform(change, on: &bytes)
                case 2:
                    if Bool.random(using: &generator) { ReplayedDisk.perform(change, on: &bytes) }
                default: ReplayedDisk.tear(change, on: &bytes, &generator)
                }
            }
            return bytes
        }
    }

    private static func perform(_ change: Change, on bytes: inout [UInt8]) {
        switch change {
        case .write(let offset, let new):
            if bytes.count < offset + new.count {
                bytes += [UInt8](repeating: 0, count: offset + new.count - bytes.count)
            }
            bytes.replaceSubrange(offset..<offset + new.count, with: new)
        case .truncate(let length):
            if length < bytes.count { bytes.removeSubrange(length...) }
            if length > bytes.count { bytes += [UInt8](repeating: 0, count: length - bytes.count) }
        }
    }

    private static func tear(_ change: Change, on bytes: inout [UInt8], _ generator: inout SeededGenerator) {
        guard case .write(let offset, let new) = change else {
            if Bool.random(using: &generator) { perform(change, on: &bytes) }
            return
        }
        var start = 0
        while start < new.count {
            let end = min(new.count, ((offset + start) / 512 + 1) * 512 - offset)
            if Int.random(in: 0..<3, using: &generator) > 0 {
                perform(.write(offset + start, Array(new[start..<end])), on: &bytes)
            }
            start = end
        }
    }
}
