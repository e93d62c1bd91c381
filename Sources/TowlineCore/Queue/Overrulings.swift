/// Downloads that the caller paused, cancelled or removed while the list was looked at for what to start: what was read of
/// them may be older than the caller's word.
///
/// A value: whoever looks says when a look begins, whoever writes a caller's word down says when that begins and ends.
package struct Overrulings: Sendable {
    private var underWay: [DownloadID: Int] = [:]
    private var sinceLook: Set<DownloadID> = []
    private var manyUnderWay = 0
    private var manySinceLook = false

    /// Nothing was said yet.
    package init() {}

    /// The list is about to be read.
    package mutating func beginLook() {
        sinceLook = []
        manySinceLook = false
    }

    /// The caller's word is about to be written down.
    package mutating func begin(_ id: DownloadID) { underWay[id, default: 0] += 1 }

    /// It is written down.
    package mutating func end(_ id: DownloadID) {
        let left = underWay[id, default: 1] - 1
        underWay[id] = left > 0 ? left : nil
        sinceLook.insert(id)
    }

    /// The same for a word about many at once.
    package mutating func beginMany() { manyUnderWay += 1 }

    /// It is written down.
    package mutating func endMany() {
        manyUnderWay -= 1
        manySinceLook = true
    }

    /// Whether a download is not to be started by what was read.
    package func holds(_ id: DownloadID) -> Bool {
        manyUnderWay > 0 || manySinceLook || underWay[id] != nil || sinceLook.contains(id)
    }
}
