internal import TowlineCore
import Synchronization

/// What transfers of one assembly share.
package final class TransferServices: Sendable {
    /// The wire.
    package let transport: any Transport
    /// The disk.
    package let storage: any Storage
    /// What is known of hosts.
    package let board: HostBoard
    /// The limit for all transfers together.
    package let limiter: RateLimiter
    /// Which places this process's transfers are at.
    let places = PlaceBoard()
    /// What their small files come in.
    let buffers = BufferPool()
    /// Where what comes in many pieces is put together.
    let stages = StagePool()
    /// The host that the last redirect of a small file led to: those of a list mostly lead to one.
    let lastTarget = Mutex<HTTPURL?>(nil)
    /// The numbers of files with the same name in a batch; `nil`: there is no list whose order counts.
    let names: NameBoard?
    /// How many of them run.
    let load = TransferLoad()
    /// What makes those look at themselves that last for a moment.
    let tickers: TickerBoard
    /// The timer of all transfers.
    let after: DelayedCall
    /// The time that everything here counts in: that of `HostBoard` and `RateLimiter`, too.
    let clock: @Sendable () -> Duration
    /// Report each step of each transfer (`TransferObserver.traced`).
    let traces: Bool
    /// The executor of unstructured tasks; `nil`: the runtime's own.
    private let executor: (any TaskExecutor)?
    /// What decides how many of them run; `nil`: others do.
    private let slots: BatchSlots?

    /// Assembles them.
    package convenience init(
        transport: any Transport, storage: any Storage, board: HostBoard, limiter: RateLimiter,
        executor: (any TaskExecutor)? = nil, after: DelayedCall? = nil,
        clock: @escaping @Sendable () -> Duration = { MonotonicClock.now }, traces: Bool = false
    ) {
        self.init(
            transport: transport, storage: storage, board: board, limiter: limiter, slots: nil, executor: executor,
            after: after, clock: clock, traces: traces)
    }

    init(
        transport: any Transport, storage: any Storage, board: HostBoard, limiter: RateLimiter, slots: BatchSlots?,
        executor: (any TaskExecutor)?, after: DelayedCall?, clock: @escaping @Sendable () -> Duration,
        traces: Bool = false
    ) {
        self.traces = traces
        self.slots = slots
        names = slots == nil ? nil : NameBoard()
        self.executor = executor
        self.clock = clock
        // Nobody cancels that task: it ends by itself.
        let after =
            after ?? { delay, body in
                Task {
                    try? await Task.sleep(for: delay)
                    body()
                }
            }
        self.after = after
        tickers = TickerBoard(after: after, clock: clock)
        self.transport = transport
        self.storage = storage
        self.board = board
        self.limiter = limiter
    }

    /// The time now.
    var now: Duration { clock() }

    /// Begins an unstructured task. Under a limit on threads (`RLIMIT_NPROC`) the runtime's own executor would wait for
    /// a thread without end.
    @discardableResult
    func begin<Value: Sendable>(_ operation: sending @escaping () async -> Value) -> Task<Value, Never> {
        Task(executorPreference: executor, operation: operation)
    }

    /// Whether one more may have connections of its own to a host, to which the one that it first asks may have led it. If it
    /// may, `HostBoard.left` follows.
    func admit(_ origin: HTTPURL.Origin, from first: HTTPURL.Origin) -> Bool {
        board.admit(origin, limit: slots?.connections(to: first) ?? .max)
    }

    /// Writes down what one found out of a host, to which the one that it first asks may have led it.
    func record(_ report: HostReport, of origin: HTTPURL.Origin, from first: HTTPURL.Origin) {
        if report.asksForLess { slots?.refused(by: first) }
        if case .leaveAlone = report { board.led(from: first, to: origin) }
        board.record(report, of: origin)
    }
}

/// How many transfers of one assembly run.
final class TransferLoad: Sendable {
    private let count = Atomic<Int>(0)

    var running: Int { count.load(ordering: .relaxed) }

    func enter() { count.wrappingAdd(1, ordering: .relaxed) }

    func leave() { count.wrappingSubtract(1, ordering: .relaxed) }
}

extension TransferTerms {
    /// The part of the options that decisions depend on.
    init(_ options: DownloadOptions) {
        self.init(source: options.url)
        connections = options.connections
        ignoresLength = options.connection.ignoresLength
        sequential = options.sequential || ignoresLength
        isStream = options.target.isStream
        retry = RetryPolicy(maxTries: options.maxTries, backoff: Backoff(base: options.retryWait))
        retry.longestWait = options.longestWait
        retryStatuses = options.retryStatuses
        stallTimeout = options.stallTimeout
        connectTimeout = options.connection.connectTimeout
        headTimeout = options.connection.headTimeout
        maximumSize = options.maximumSize
        maxRedirects = options.maxRedirects
        allowsDowngrade = options.allowsDowngrade
        unsafeResume = options.unsafeResume
        ignoresServerChecksums = options.ignoresServerChecksums
        acceptsWebPages = options.acceptsWebPages
        if case .file(_, let name) = options.target { fileName = name }
        mirrors = options.mirrors
        restartsChanged = options.restartsChanged
        checksum = options.checksum
        userFields = options.userFields
        hasUser = options.connection.user != nil || options.userFields.has("Authorization")
    }
}
