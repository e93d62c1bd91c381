import Glibc
import Synchronization
internal import TowlineCore
internal import TowlineThreads

/// Computes the checksums of a file from its beginning while the rest is still downloaded, so that little remains to be
/// hashed at the end. Uses its own thread, which runs while it has bytes to read and stays for a moment: with a fast
/// download, it would otherwise end and start a hundred times a second.
final class PrefixHasher: Sendable {
    /// The state of the hashing: the checksum computations (digests), the bytes that may be hashed next, and the
    /// activity of the thread.
    fileprivate struct Progress {
        var digests: [Checksum.Algorithm: MessageDigest] = [:]
        /// The number of bytes, from the beginning of the file, that the digests include.
        var hashed: Int64 = 0
        /// The end offset of the bytes that may be hashed: they are written and do not change.
        var end: Int64 = 0
        /// A counter that increases when the hashed bytes become invalid; the result of a read that began before is
        /// dropped.
        var generation = 0
        var isRunning = false
        /// The event that wakes the hashing thread, which waits for more bytes; `nil` if the thread does not wait.
        var parked: AutoResetEvent?
        var isCancelled = false
        var waiter: Waiter?
    }

    /// The call of `mismatches` that waits until all bytes are hashed: the expected checksums and its continuation.
    fileprivate struct Waiter: Sendable {
        let checksums: [Checksum]
        let continuation: CheckedContinuation<Result<[ChecksumMismatch], TowlineError>, Never>
    }

    /// The next action of the hashing thread: to hash a block, answer the waiting `mismatches` call, wait for more
    /// bytes, or end.
    fileprivate enum Step {
        case hash(ByteRange, [MessageDigest], generation: Int)
        case answer(Waiter, Result<[ChecksumMismatch], TowlineError>)
        case wait
        case rest
    }

    /// The number of bytes that one read hashes, and the minimum number of new bytes that starts the thread.
    static let blockSize = 1 << 20
    /// The time in milliseconds that the thread waits for more bytes before it ends.
    private static let patience = 50

    private let file: Descriptor
    private let state = Mutex(Progress())

    init(file: Descriptor) { self.file = file }

    /// The number of bytes hashed so far, for tests.
    var hashed: Int64 { state.withLock { $0.hashed } }

    /// Allows the first `end` bytes to be hashed with `algorithms`: they are written and do not change. Does not wait.
    func advance(_ algorithms: [Checksum.Algorithm], to end: Int64) {
        let call: Call = state.withLock { state in
            guard state.waiter == nil, !state.isCancelled else { return .nobody }
            state.want(algorithms)
            if end < state.hashed { state.forget() }
            state.end = end
            return end - state.hashed >= Int64(Self.blockSize) ? state.call() : .nobody
        }
        perform(call)
    }

    /// Starts again from the first byte, because written bytes will be replaced. A waiting `mismatches` call fails with
    /// `cancelled`.
    func forget() {
        let waiter = state.withLock { state in
            state.forget()
            state.end = 0
            return state.takeWaiter()
        }
        answerCancelled(waiter)
    }

    private var cancelled: TowlineError {
        TowlineError(.cancelled, "the checksum verification of \(file.path) was cancelled, so the file is not verified")
    }

    private func answerCancelled(_ waiter: Waiter?) {
        waiter?.continuation.resume(returning: .failure(cancelled))
    }

    /// Hashes the rest of the first `length` bytes. Returns the checksums that do not match, empty if all match, or the
    /// error: `cancelled`, or a failed read. A second call makes the first one fail with `cancelled`.
    func mismatches(_ checksums: [Checksum], length: Int64) async -> Result<[ChecksumMismatch], TowlineError> {
        await withCheckedContinuation { continuation in
            let (call, older) = state.withLock { state in
                state.want(checksums.map(\.algorithm))
                if length < state.hashed { state.forget() }
                state.end = length
                let older = state.takeWaiter()
                state.waiter = Waiter(checksums: checksums, continuation: continuation)
                return (state.call(), older)
            }
            answerCancelled(older)
            perform(call)
        }
    }

    /// Stops the thread soon. A waiting `mismatches` call fails with `cancelled`.
    func cancel() {
        let parked = state.withLock { state in
            state.isCancelled = true
            return state.parked.take()
        }
        parked?.set()
    }

    /// The way to notify the hashing thread of new work: not at all, by waking it, or by starting it.
    fileprivate enum Call {
        case nobody
        case wake(AutoResetEvent)
        case thread
    }

    private func perform(_ call: Call) {
        switch call {
        case .nobody: break
        case .wake(let event): event.set()
        // If no thread can start, the caller hashes the available bytes and does not wait for more.
        case .thread: if !WorkThread.tryStart({ self.run(stays: true) }) { run(stays: false) }
        }
    }

    private func run(stays: Bool) {
        let event = AutoResetEvent()
        var isPatient = stays
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: Self.blockSize, alignment: 4096)
        defer { buffer.deallocate() }
        while true {
            switch nextStep(parking: isPatient ? event : nil) {
            case .hash(let range, let digests, let generation):
                isPatient = stays
                hash(range, digests, generation, UnsafeMutableRawBufferPointer(rebasing: buffer[..<Int(range.count)]))
            case .answer(let waiter, let result): return waiter.continuation.resume(returning: result)
            case .wait: isPatient = event.wait(milliseconds: Self.patience)
            case .rest: return
            }
        }
    }

    private func nextStep(parking event: AutoResetEvent?) -> Step {
        state.withLock { state in
            state.parked = nil
            if state.isCancelled {
                return state.rest(with: .failure(cancelled))
            }
            let left = state.end - state.hashed
            let takesAll = state.waiter != nil
            if takesAll ? left > 0 : left >= Int64(Self.blockSize) {
                let count = min(left, Int64(Self.blockSize))
                return .hash(
                    ByteRange(state.hashed, state.hashed + count), Array(state.digests.values),
                    generation: state.generation)
            }
            guard let waiter = state.waiter else {
                state.parked = event
                return event == nil ? state.rest(with: .success([])) : .wait
            }
            var values: [Checksum.Algorithm: [UInt8]] = [:]
            for (algorithm, digest) in state.digests { values[algorithm] = digest.finish(algorithm) }
            state.forget()
            return state.rest(with: .success(FileHasher.mismatches(waiter.checksums, values)))
        }
    }

    private func hash(
        _ range: ByteRange, _ digests: [MessageDigest], _ generation: Int, _ buffer: UnsafeMutableRawBufferPointer
    ) {
        do throws(TowlineError) {
            let count = try file.read(into: buffer, at: range.lowerBound)
            guard count == buffer.count else { throw TowlineError.reading(file.path, EIO) }
            for digest in digests { digest.update(UnsafeRawBufferPointer(buffer)) }
            state.withLock { if $0.generation == generation { $0.hashed = range.upperBound } }
        } catch {
            // Not reported before the end: a waiting caller or a later call reads the bytes again and gets the error.
            let waiter = state.withLock { state -> Waiter? in
                state.forget()
                state.end = 0
                return state.takeWaiter()
            }
            waiter?.continuation.resume(returning: .failure(error))
        }
    }
}

/// The changes of the hashing state, which the threads make under the lock of the hasher.
extension PrefixHasher.Progress {
    /// Starts a checksum computation (digest) for each algorithm that has no computation yet. A new algorithm restarts
    /// the hashing; algorithms that are no longer needed continue.
    fileprivate mutating func want(_ algorithms: [Checksum.Algorithm]) {
        guard !algorithms.allSatisfy({ digests[$0] != nil }) else { return }
        for algorithm in algorithms { digests[algorithm] = MessageDigest(algorithm) }
        forget()
    }

    fileprivate mutating func forget() {
        generation += 1
        hashed = 0
        digests = Dictionary(uniqueKeysWithValues: digests.keys.map { ($0, MessageDigest($0)) })
    }

    fileprivate mutating func takeWaiter() -> PrefixHasher.Waiter? {
        defer { waiter = nil }
        return waiter
    }

    fileprivate mutating func call() -> PrefixHasher.Call {
        defer { isRunning = true }
        guard isRunning else { return .thread }
        return parked.take().map { .wake($0) } ?? .nobody
    }

    fileprivate mutating func rest(
        with result: Result<[ChecksumMismatch], TowlineError>
    ) -> PrefixHasher.Step {
        isRunning = false
        return takeWaiter().map { .answer($0, result) } ?? .rest
    }
}
