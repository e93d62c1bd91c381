internal import TowlineCore
import Synchronization

/// The objects that all transfers of a process or batch share: the transport, the storage, the observations about
/// hosts, limits and timers.
package final class TransferServices: Sendable {
    /// The transport that sends the HTTP requests of all transfers.
    package let transport: any Transport
    /// The storage of part files and finished files.
    package let storage: any Storage
    /// The observations about hosts that all transfers share, such as connection limits.
    package let board: HostBoard
    /// The rate limiter of all transfers together.
    package let limiter: RateLimiter
    /// The destinations (directory and file name) that the transfers of this process use, so that no two write to the
    /// same file.
    let places: PlaceBoard
    /// The pool of memory buffers for small files, which are held in memory until they are complete.
    let buffers = BufferPool()
    /// The pool of memory blocks in which requests collect received bytes, to write them in one call.
    let stages = StagePool()
    /// The numbers for files with the same name in a batch, as in `NAME (1)`; `nil` outside a batch, where downloads
    /// have no order.
    let names: NameBoard?
    /// The starter of the repeating timers (tickers) of transfers that last longer than about 50 ms.
    let tickers: TickerBoard
    /// The timer that all transfers use: it calls a function after a delay.
    let after: DelayedCall
    /// The clock: returns the monotonic time. `HostBoard` and `RateLimiter` use the same clock.
    let clock: @Sendable () -> Duration
    /// `true` to report each step of each transfer as a line of text for debugging (`TransferObserver.traced`).
    let traces: Bool
    /// The executor for the tasks that `begin` starts; `nil`: the default executor of the Swift runtime.
    private let executor: (any TaskExecutor)?
    /// The slots that limit how many downloads of a batch run at once; `nil` outside a batch, where this type sets no
    /// limit.
    private let slots: BatchSlots?

    /// Creates the services for transfers outside a batch. `after` is the timer; `nil` for a timer that uses
    /// `Task.sleep`.
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
        places = PlaceBoard(remembersEarlier: slots != nil)
        names = slots == nil ? nil : NameBoard()
        self.executor = executor
        self.clock = clock
        // This task is never cancelled. It ends after the delay.
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

    /// The current monotonic time, read from `clock`.
    var now: Duration { clock() }

    /// Starts an unstructured task on `executor`. The default executor of the runtime could wait for a thread forever
    /// under a limit on threads (`RLIMIT_NPROC`).
    @discardableResult
    func begin<Value: Sendable>(_ operation: sending @escaping () async -> Value) -> Task<Value, Never> {
        Task(executorPreference: executor, operation: operation)
    }

    /// Asks the host `origin` to permit a transfer connections of its own (`HostBoard.admit`), and returns whether it
    /// does; call `HostBoard.left` afterwards. `first`: the host of the download's URL, which may have redirected to
    /// `origin`.
    func admit(_ origin: HTTPURL.Origin, from first: HTTPURL.Origin) -> Bool {
        board.admit(origin, limit: slots?.connections(to: first) ?? .max)
    }

    /// Records an observation of a transfer about the host `origin`, such as a connection limit. `first`: the host of
    /// the download's URL, which may have redirected to `origin`.
    func record(_ report: HostReport, of origin: HTTPURL.Origin, from first: HTTPURL.Origin) {
        if report.asksForLess { slots?.refused(by: first) }
        if case .leaveAlone = report { board.led(from: first, to: origin) }
        board.record(report, of: origin)
    }
}

/// A counter of the running transfers that share the services. The more run, the less often each checks timeouts and
/// progress.
final class TransferLoad: Sendable {
    private let count = Atomic<Int>(0)

    var running: Int { count.load(ordering: .relaxed) }

    func enter() { count.wrappingAdd(1, ordering: .relaxed) }

    func leave() { count.wrappingSubtract(1, ordering: .relaxed) }
}

extension TransferTerms {
    /// Creates the terms, the options that affect the decisions of the state machine, from all options of a download.
    init(_ options: DownloadOptions) {
        self.init(source: options.url)
        self.options = options.transfer
        ignoresLength = options.connection.ignoresLength
        if ignoresLength { self.options.isSequential = true }
        isStream = options.target.isStream
        connectTimeout = options.connection.connectTimeout
        headTimeout = options.connection.headTimeout
        if case .file(_, let name) = options.target { fileName = name }
        mirrors = options.mirrors
        changed = options.changed
        confirmationWait = options.confirmationWait
        isRepeated = options.isRepeated
        userFields = options.userFields
        hasUser = options.connection.user != nil || options.userFields.has("Authorization")
    }
}
