import NIOCore

/// The execution of the steps of one reply.
struct ReplyPerformer {
    /// The state of the connection after the reply.
    enum Ending {
        /// The connection can be used again.
        case open
        /// The connection is closed.
        case closed
    }

    /// The number of body bytes of one write without a rate limit.
    static let windowLength = 524_288
    /// The maximum number of body bytes of the last write of a reply.
    static let lastWriteLength = 16_384

    let stream: any ResponseStream
    let carriesBody: Bool
    /// Called with the status of each final head before it is sent.
    let sentStatus: @Sendable (Int) -> Void
    /// Called with the number of body bytes each time the kernel accepted some.
    let accepted: @Sendable (Int) -> Void
    /// Called before the write after which the client has the whole response.
    let beforeLastWrite: () -> Void
    let sharedPacer: SharedPacer?
    var pacer: Pacer?
    /// `true` during the step whose last write completes the response.
    private var isLastWritingStep = false

    init(
        stream: any ResponseStream, carriesBody: Bool, sentStatus: @escaping @Sendable (Int) -> Void,
        accepted: @escaping @Sendable (Int) -> Void, beforeLastWrite: @escaping () -> Void,
        sharedPacer: SharedPacer?, pacer: Pacer? = nil
    ) {
        self.stream = stream
        self.carriesBody = carriesBody
        self.sentStatus = sentStatus
        self.accepted = accepted
        self.beforeLastWrite = beforeLastWrite
        self.sharedPacer = sharedPacer
        self.pacer = pacer
    }

    mutating func perform(_ reply: Reply) async throws -> Ending {
        let last = lastWritingStep(of: reply)
        for (index, step) in reply.steps.enumerated() {
            try Task.checkCancellation()
            isLastWritingStep = index == last
            if try await perform(step) == .closed { return .closed }
        }
        try await stream.finish()
        return .open
    }

    private mutating func perform(_ step: Reply.Step) async throws -> Ending {
        switch step {
        case .head(let head):
            if head.status >= 200 { sentStatus(head.status) }
            try await send(stream.headBytes(head))
        case .raw(let bytes): try await send(bytes)
        case .repeated(let bytes, let count): try await send(bytes, times: count)
        case .repeatedHead(let head, let count): try await send(stream.headBytes(head), times: count)
        case .content(let content, let range) where carriesBody: try await sendBody(content, range)
        case .bytes(let bytes) where carriesBody: try await sendBody(bytes)
        case .chunks(let content, let range, let size) where carriesBody:
            try await sendChunks(content, range, size)
        case .lastChunk where carriesBody && !stream.framesBody: try await send(Array("0\r\n\r\n".utf8))
        case .content, .bytes, .chunks, .lastChunk: break
        case .rate(let rate):
            pacer = rate.map(Pacer.init)
            if rate != nil { await stream.limitSendBuffer() }
        case .pause(let duration): await pause(duration)
        case .wait(let gate): await first(gate, stream.clientGone)
        case .stall: await stream.clientGone.passed()
        case .goAway: try await stream.end(step)
        case .close, .closeWithoutNotify, .closeOutput, .reset, .resetStream:
            try await stream.end(step)
            if case .closeOutput = step { await stream.clientGone.passed() }
            return .closed
        }
        return .open
    }

    /// Returns the index of the step whose last write completes the response; `nil` if a wait or a flood completes it.
    private func lastWritingStep(of reply: Reply) -> Int? {
        guard let index = reply.steps.lastIndex(where: { !writesNothing($0) }) else { return nil }
        return switch reply.steps[index] {
        case .head, .raw, .bytes, .content, .lastChunk: index
        default: nil
        }
    }

    private func writesNothing(_ step: Reply.Step) -> Bool {
        switch step {
        case .content(_, let range): !carriesBody || range.isEmpty
        case .bytes(let bytes): !carriesBody || bytes.isEmpty
        case .chunks(_, let range, _): !carriesBody || range.isEmpty
        case .lastChunk: !carriesBody || stream.framesBody
        case .rate, .close, .closeWithoutNotify, .closeOutput, .reset, .resetStream: true
        default: false
        }
    }

    private mutating func send(_ bytes: [UInt8]) async throws {
        var rest = bytes[...]
        while !rest.isEmpty {
            let piece = rest.prefix(pacer?.pieceLength ?? rest.count)
            rest = rest.dropFirst(piece.count)
            try await pacer?.wait(for: piece.count)
            if isLastWritingStep, rest.isEmpty { beforeLastWrite() }
            try await stream.send(ByteBuffer(bytes: piece)).get()
        }
    }

    /// Sends repeated bytes, joined to writes of about 64 KiB so that a flood is fast.
    private mutating func send(_ bytes: [UInt8], times: Int?) async throws {
        guard !bytes.isEmpty else { return }
        let batch = pacer == nil ? max(1, 65_536 / bytes.count) : 1
        var left = times ?? .max
        while left > 0 {
            try Task.checkCancellation()
            let count = min(batch, left)
            try await send(Array(repeatElement(bytes, count: count).joined()))
            if times != nil { left -= count }
        }
    }

    private mutating func sendBody(_ bytes: [UInt8]) async throws {
        var rest = bytes[...]
        while !rest.isEmpty {
            let piece = rest.prefix(pacer?.pieceLength ?? rest.count)
            rest = rest.dropFirst(piece.count)
            try await waitTurn(piece.count)
            if isLastWritingStep, rest.isEmpty { beforeLastWrite() }
            try await stream.sendBody(ByteBuffer(bytes: piece), accepted: accepted).get()
        }
    }

    /// Sends a range of a file. Generates one window while the kernel accepts the previous one.
    private mutating func sendBody(_ content: FaultContent, _ range: Range<Int64>) async throws {
        var offset = range.lowerBound
        var previous: EventLoopFuture<Void>?
        while offset < range.upperBound {
            try Task.checkCancellation()
            let limit = Int64(pacer?.pieceLength ?? (sharedPacer == nil ? ReplyPerformer.windowLength : 65_536))
            var count = Int(min(limit, range.upperBound - offset))
            if isLastWritingStep, offset + Int64(count) == range.upperBound, count > ReplyPerformer.lastWriteLength {
                // A slow client needs long to read a window, so the last write must be short.
                count -= ReplyPerformer.lastWriteLength
            }
            let buffer = ReplyPerformer.buffer(content, at: offset, count: count)
            try await waitTurn(count)
            try await previous?.get()
            if isLastWritingStep, offset + Int64(count) == range.upperBound { beforeLastWrite() }
            previous = try await stream.sendBody(buffer, accepted: accepted)
            offset += Int64(count)
        }
        try await previous?.get()
    }

    private mutating func sendChunks(_ content: FaultContent, _ range: Range<Int64>, _ size: Int) async throws {
        guard !stream.framesBody else { return try await sendBody(content, range) }
        var offset = range.lowerBound
        while offset < range.upperBound {
            let end = min(offset + Int64(max(1, size)), range.upperBound)
            try await send(Array((String(end - offset, radix: 16) + "\r\n").utf8))
            try await sendBody(content, offset..<end)
            try await send([13, 10])
            offset = end
        }
    }

    private mutating func waitTurn(_ count: Int) async throws {
        try await pacer?.wait(for: count)
        try await sharedPacer?.wait(for: count)
    }

    private func pause(_ duration: Duration) async {
        await withTaskGroup(of: Void.self) { [stream] group in
            // A cancelled sleep throws; the check before the next step then ends the reply.
            group.addTask { try? await Task.sleep(for: duration) }
            group.addTask { await stream.clientGone.passed() }
            await group.next()
            group.cancelAll()
        }
    }

    private func first(_ gates: Gate...) async {
        await withTaskGroup(of: Void.self) { group in
            for gate in gates { group.addTask { await gate.passed() } }
            await group.next()
            group.cancelAll()
        }
    }

    private static func buffer(_ content: FaultContent, at offset: Int64, count: Int) -> ByteBuffer {
        var buffer = ByteBufferAllocator().buffer(capacity: count)
        buffer.writeWithUnsafeMutableBytes(minimumWritableBytes: count) { memory in
            content.fill(UnsafeMutableRawBufferPointer(rebasing: memory[..<count]), at: offset)
            return count
        }
        return buffer
    }
}
