@testable import TowlineDisk

/// A generator with a seed (SplitMix64), so that a failure can be reproduced.
struct SeededGenerator: RandomNumberGenerator {
    private var state: UInt64

    init(seed: UInt64) { state = seed }

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var value = state
        value = (value ^ (value >> 30)) &* 0xBF58_476D_1CE4_E5B9
        value = (value ^ (value >> 27)) &* 0x94D0_49BB_1331_11EB
        return value ^ (value >> 31)
    }

    mutating func chance(_ percent: Int) -> Bool { Int.random(in: 0..<100, using: &self) < percent }
}

/// Makes the disks that a power loss may leave.
///
/// A synced operation is kept. Each later operation is kept, lost or, for a write, kept in some of its sectors of 512
/// bytes. Names are separate from files: making a file durable does not make its name durable.
struct PowerLoss {
    /// The fate of operations that no sync covered.
    private enum Fate: CaseIterable {
        case allLost, allKept, eachRandom, oneLost, oneKept, namesKept, namesLost
    }

    /// Returns the disk after the first `count` events with no loss, as a SIGKILL leaves it.
    static func kill(_ disk: SimulatedDisk, after count: Int, log: [DiskEvent]) -> DiskImage {
        var image = disk.base
        for event in log.prefix(count) { apply(event, to: &image) }
        return image
    }

    /// Returns one of the disks that a power loss after the first `count` events may leave.
    static func strike(
        _ disk: SimulatedDisk, after count: Int, log: [DiskEvent], _ generator: inout SeededGenerator
    ) -> DiskImage {
        let pending = pendingEvents(log.prefix(count))
        let fate = Fate.allCases.randomElement(using: &generator) ?? .allLost
        let special = pending.randomElement(using: &generator)
        let tears = generator.chance(50)
        var image = disk.base
        var deleted: Set<Int> = []
        for (index, event) in log.prefix(count).enumerated() {
            guard pending.contains(index) else {
                apply(event, to: &image)
                continue
            }
            let isName = isNameEvent(event)
            let isKept =
                switch fate {
                case .allLost: false
                case .allKept: true
                case .eachRandom: generator.chance(50)
                case .oneLost: index != special
                case .oneKept: index == special
                case .namesKept: isName || generator.chance(50)
                case .namesLost: !isName && generator.chance(50)
                }
            if case .enter(_, let inode) = event { image.lastInode = max(image.lastInode, inode) }
            if case .counted(let inode) = event, !isKept { deleted.insert(inode) }
            if isKept {
                apply(event, to: &image)
            } else if tears, generator.chance(30) {
                tear(event, &image, &generator)
            }
        }
        image.names = image.names.filter { !deleted.contains($0.value) }
        let used = Set(image.names.values)
        image.inodes = image.inodes.filter { used.contains($0.key) }
        return image
    }

    /// Returns the indices of the events that no sync among `events` covers.
    private static func pendingEvents(_ events: ArraySlice<DiskEvent>) -> [Int] {
        var pending: [Int] = []
        var synced: Set<Int> = []
        var syncedWholly: Set<Int> = []
        var isDirectorySynced = false
        for (index, event) in events.enumerated().reversed() {
            switch event {
            case .syncDirectory: isDirectorySynced = true
            case .syncFile(let inode, let everything):
                synced.insert(inode)
                if everything { syncedWholly.insert(inode) }
            case .write(let inode, _, _), .resize(let inode, _):
                if !synced.contains(inode) { pending.append(index) }
            case .attribute(let inode, _, _), .modified(let inode, _), .counted(let inode):
                if !syncedWholly.contains(inode) { pending.append(index) }
            case .enter, .rename, .remove:
                if !isDirectorySynced { pending.append(index) }
            case .note: break
            }
        }
        return pending
    }

    static func isNameEvent(_ event: DiskEvent) -> Bool {
        switch event {
        case .enter, .rename, .remove: true
        default: false
        }
    }

    private static func apply(_ event: DiskEvent, to image: inout DiskImage) {
        func change(_ inode: Int, _ body: (inout SimulatedInode) -> Void) {
            // A file whose first name was lost still exists: another name may refer to it.
            body(&image.inodes[inode, default: SimulatedInode(birth: Int64(inode))])
            image.lastInode = max(image.lastInode, inode)
        }
        switch event {
        case .write(let inode, let offset, let bytes):
            bytes.withUnsafeBytes { raw in change(inode) { $0.write(raw, at: offset) } }
        case .resize(let inode, let length): change(inode) { $0.resize(to: length) }
        case .attribute(let inode, let name, let value): change(inode) { $0.attributes[name] = value }
        case .modified(let inode, let seconds): change(inode) { $0.modified = seconds }
        case .enter(let name, let inode):
            change(inode) { _ in }
            image.names[name] = inode
        case .rename(let from, let to, let inode):
            change(inode) { _ in }
            if image.names[from] == inode { image.names[from] = nil }
            image.names[to] = inode
        case .remove(let name): image.names[name] = nil
        case .counted, .syncFile, .syncDirectory, .note: break
        }
    }

    /// Applies some sectors of a write.
    private static func tear(_ event: DiskEvent, _ image: inout DiskImage, _ generator: inout SeededGenerator) {
        guard case .write(let inode, let offset, let bytes) = event else { return }
        var start = offset
        while start < offset + bytes.count {
            let end = min((start / 512 + 1) * 512, offset + bytes.count)
            if generator.chance(50) {
                let piece = Array(bytes[(start - offset)..<(end - offset)])
                apply(.write(inode: inode, offset: start, bytes: piece), to: &image)
            }
            start = end
        }
    }
}
