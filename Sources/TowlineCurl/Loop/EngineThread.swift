import Glibc
import Synchronization
internal import TowlineCore
internal import TowlineEngine
internal import TowlineThreads

/// The settings and records that all engine threads of a `CurlTransport` share.
struct EngineContext: Sendable {
    /// The number of bytes that an attempt reads with one call if few attempts run (`BufferPolicy`).
    let bufferSize: Int
    let http1Hosts = HTTP1Hosts()
    let challengeHosts = ChallengeHosts()
    /// The proxies that the environment named when the transport was created.
    let proxies = ProxyEnvironment.current()
}

/// A POSIX thread that runs an `AttemptLoop`, the event loop of libcurl's requests, and takes commands from other
/// threads.
final class EngineThread: Sendable {
    /// A command of another thread for the event loop of this thread.
    enum Command: Sendable {
        /// Sends the request of an attempt and passes its response to the receiver.
        case start(AttemptRequest, any AttemptReceiver)
        /// Ends an attempt as cancelled, if it has not ended.
        case cancel(AttemptID)
        /// Resumes an attempt whose receiver paused it. If it is not paused, calls `AttemptReceiver.flush`, so that the
        /// receiver writes the bytes that it has collected to save system calls.
        case proceed(AttemptID)
        /// Records the addresses of a host that another thread has looked up; empty if the lookup failed.
        case learn(AddressBook.Endpoint, [SocketAddress])
    }

    /// The commands of other threads for the event loop, and the progress of the thread's end.
    private struct Control {
        var commands: [Command] = []
        var isStopping = false
        /// `true` once the thread has made its last callback. No thread may use `poll` from then on.
        var isOver = false
        var waiters: [CheckedContinuation<Void, Never>] = []
        /// The POSIX thread, until another thread joins or detaches it; then `nil`.
        var thread: PlatformThread?
    }

    /// The number of attempts that were posted to the thread and have not ended: its load.
    var runningCount: Int { load.load(ordering: .relaxed) }
    private let load = Atomic<Int>(0)

    private let state = Mutex(Control())
    private let poll: EventPoll
    private let context: EngineContext

    /// Starts the thread and names it for tools such as ps(1); `nil` if the system refuses a descriptor or a thread.
    init?(name: String, context: EngineContext) {
        guard let poll = EventPoll() else { return nil }
        self.poll = poll
        self.context = context
        let thread = Self.start {
            EventPoll.nameThread(name)
            self.run()
        }
        guard let thread else {
            poll.close()
            return nil
        }
        state.withLock { $0.thread = thread }
    }

    /// Returns whether the calling thread is the thread of this object.
    var isCurrent: Bool { LocalRunQueue.isOwned(by: self) }

    /// Posts a command and wakes the thread.
    ///
    /// - Returns: `false` if the thread is stopping and ignores the command.
    func post(_ command: Command) -> Bool {
        state.withLock { state in
            guard !state.isStopping else { return false }
            if case .start = command { load.add(1, ordering: .relaxed) }
            state.commands.append(command)
            // After its own jobs, the thread checks for commands without a wake-up.
            if state.commands.count == 1, !LocalRunQueue.isRunning(of: self) { poll.wake() }
            return true
        }
    }

    /// Asks the thread to cancel all attempts and end. Returns without waiting for that.
    func requestStop() {
        state.withLock { state in
            guard !state.isStopping else { return }
            state.isStopping = true
            poll.wake()
        }
    }

    /// Stops the thread and returns when it has ended. Blocks no cooperative thread.
    func stop() async {
        requestStop()
        await withCheckedContinuation { continuation in
            let isOver = state.withLock { state in
                if !state.isOver { state.waiters.append(continuation) }
                return state.isOver
            }
            if isOver { continuation.resume() }
        }
        let thread = state.withLock { state in
            defer { state.thread = nil }
            return state.thread
        }
        // The thread only returns now, so the join does not block for long.
        thread?.join()
    }

    /// Stops and detaches the thread, for an owner that does not join it.
    func abandon() {
        requestStop()
        let thread = state.withLock { state in
            defer { state.thread = nil }
            return state.thread
        }
        thread?.detach()
    }

    /// Runs the event loop until `requestStop`, then ends all attempts. The main function of the thread.
    private func run() {
        _ = CurlLibrary.initialisation
        let tasks = LocalRunQueue(of: self)
        let loop = AttemptLoop(
            poll: poll, tasks: tasks, context: context, lookUp: { [self] endpoint in lookUp(endpoint) },
            attemptDidEnd: { [self] in load.subtract(1, ordering: .relaxed) })
        var isStopping = false
        while !isStopping {
            let isWoken = loop.turn(mayWait: tasks.isEmpty)
            let hasRun = tasks.run()
            guard isWoken || hasRun else { continue }
            let commands: [Command]
            (commands, isStopping) = state.withLock { state in
                defer { state.commands = [] }
                return (state.commands, state.isStopping)
            }
            for command in commands { perform(command, on: loop) }
        }
        loop.stop()
        while tasks.run() {}
        let waiters = state.withLock { state in
            state.isOver = true
            poll.close()
            defer { state.waiters = [] }
            return state.waiters
        }
        for waiter in waiters { waiter.resume() }
    }

    /// Looks up the addresses of a host on a new thread, which posts them as the command `learn`. If no thread can
    /// start, the addresses stay unknown, and libcurl's own order stays in use.
    private func lookUp(_ endpoint: AddressBook.Endpoint) {
        _ = WorkThread.tryStart { [self] in
            let addresses = SocketAddress.resolve(endpoint.host, port: endpoint.port, family: endpoint.systemFamily)
            _ = post(.learn(endpoint, addresses))
        }
    }

    private func perform(_ command: Command, on loop: AttemptLoop) {
        switch command {
        case .start(let request, let receiver): loop.start(request, receiver)
        case .cancel(let id): loop.cancel(id)
        case .proceed(let id): loop.proceed(id)
        case .learn(let endpoint, let addresses): loop.learn(addresses, of: endpoint)
        }
    }

    /// Starts a POSIX thread that blocks signals: signals are for the application's own threads, and a closed
    /// connection must not end the process with SIGPIPE (libcurl leaves that to its user under `CURLOPT_NOSIGNAL`).
    private static func start(_ body: @escaping @Sendable () -> Void) -> PlatformThread? {
        var blocked = sigset_t()
        var previous = sigset_t()
        sigfillset(&blocked)
        // A fault of the thread must reach its handler: a blocked one would end the process without a trace.
        for signal in [SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT] { sigdelset(&blocked, signal) }
        pthread_sigmask(SIG_SETMASK, &blocked, &previous)
        defer { pthread_sigmask(SIG_SETMASK, &previous, nil) }
        return PlatformThread(body)
    }
}
