import Glibc
import Synchronization
internal import TowlineCore
internal import TowlineThreads

/// Hashes a file from its beginning while the rest is still on its way, so that little remains at the end: on a thread
/// of its own, which lives while there is something to read, and a moment longer: where bytes come fast it would end a
/// hundred times a second.
final class PrefixHasher: Sendable {
    fileprivate struct State {
        var digests: [Checksum.Algorithm: MessageDigest] = [:]
        /// The digests have taken so many bytes.
        var hashed: Int64 = 0
        /// So many bytes may be taken.
        var end: Int64 = 0
        /// Goes up when what was hashed is worth nothing any more.
        var generation = 0
        var isRunning = false
        /// Wakes the thread that waits for more.
        var parked: AutoResetEvent?
        var isCancelled = false
        var waiter: Waiter?
    }

    fileprivate struct Waiter: Sendable {
        let checksums: [Checksum]
        let continuation: CheckedContinuation<Result<[ChecksumMismatch], TowlineError>, Never>
    }

    /// What the thread does next.
    fileprivate enum Step {
        case hash(ByteRange, [MessageDigest], generation: Int)
        case answer(Waiter, Result<[ChecksumMismatch], TowlineError>)
        case wait
        case rest
    }

    /// Read at once; also what must be there for the thread to begin.
    static let blockSize = 1 << 20
    /// So many milliseconds the thread waits for more.
    private static let patience = 50

    private let file: Descriptor
    private let state = Mutex(State())

    init(file: Descriptor) { self.file = file }

    /// How many bytes have been taken; for tests.
    var hashed: Int64 { state.withLock { $0.hashed } }

    /// The first `end` bytes are written and stay.
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

    /// Bytes that were written are given up: nothing that was hashed counts, and who waits for it is told that it is
    /// cancelled.
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

    /// Hashes what is left of the first `length` bytes, and compares.
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

    /// Ends soon; who waits is told so.
    func cancel() {
        let parked = state.withLock { state in
            state.isCancelled = true
            return state.parked.take()
        }
        parked?.set()
    }

    /// Who has to hear that there is something to do.
    fileprivate enum Call {
        case nobody
        case wake(AutoResetEvent)
        case thread
    }

    private func perform(_ call: Call) {
        switch call {
        case .nobody: break
        case .wake(let event): event.set()
        // Without a thread the caller hashes what there is, and does not wait for more.
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
            // Ahead of the end this is no news: whoever waits reads again, and hears of it.
            let waiter = state.withLock { state -> Waiter? in
                state.forget()
                state.end = 0
                return state.takeWaiter()
            }
            waiter?.continuation.resume(returning: .failure(error))
        }
    }
}

extension PrefixHasher.State {
    /// Other algorithms than before begin anew; what nobody asks for any more goes on unseen.
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
