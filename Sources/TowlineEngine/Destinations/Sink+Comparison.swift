internal import TowlineCore

extension Sink {
    /// Reads the bytes of the sink from the file offset `offset` on and returns whether they equal `bytes`. `false`
    /// also if the sink has fewer bytes.
    func holds(_ bytes: UnsafeRawBufferPointer, at offset: Int64) throws(TowlineError) -> Bool {
        var done = 0
        var isEqual = true
        var failure: TowlineError?
        withUnsafeTemporaryAllocation(byteCount: 16 << 10, alignment: 16) { held in
            while done < bytes.count, isEqual, failure == nil {
                let count = min(held.count, bytes.count - done)
                let window = UnsafeMutableRawBufferPointer(rebasing: held[..<count])
                do throws(TowlineError) {
                    let read = try read(into: window, at: offset + Int64(done))
                    isEqual = read == count && window.elementsEqual(bytes[done..<(done + count)])
                } catch {
                    failure = error
                }
                done += count
            }
        }
        if let failure { throw failure }
        return isEqual
    }
}
