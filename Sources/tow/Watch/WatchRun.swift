import Glibc
import TowlineClient
import TowlineCore
import TowlineThreads
import TowlineWire

/// The run of `tow watch`, which passes keys, signals, ticks and responses to the model, and performs its actions.
struct WatchRun: Sendable {
    let client: ServiceClient
    let selection: ListSelection
    let style: TerminalStyle

    private static let interval = Duration.seconds(1)
    /// The time that a SIGTSTP may take to stop the process.
    private static let stopTime = Duration.milliseconds(500)

    /// An input from outside the model.
    private enum Happening: Sendable {
        case event(WatchEvent)
        case signal(WatchSignals.Wish)
        /// Standard input is closed.
        case inputEnded
    }

    /// Runs until the user quits, standard input ends or a signal ends the command. Restores the terminal and returns
    /// the exit status.
    func perform() async -> Int32 {
        let screen = FullScreen()
        let (happenings, channel) = AsyncStream.makeStream(of: Happening.self)
        WatchSignals.watch(abandon: { screen.abandon() }, tell: { channel.yield(.signal($0)) })
        screen.enter()
        defer { screen.leave() }
        Self.readKeys { channel.yield($0) }
        let clock = Task {
            while !Task.isCancelled {
                channel.yield(.event(.tick))
                try await Task.sleep(for: Self.interval)
            }
        }
        defer { clock.cancel() }
        return await follow(happenings, screen) { channel.yield(.event($0)) }
    }

    private func follow(
        _ happenings: AsyncStream<Happening>, _ screen: FullScreen, tell: @escaping @Sendable (WatchEvent) -> Void
    ) async -> Int32 {
        let began = ContinuousClock.now
        let size = TerminalWindow.size(of: STDOUT_FILENO)
        var model = WatchModel(width: size.width, height: size.height)
        var shown = ""
        var suspended: Duration?
        for await happening in happenings {
            let now = ContinuousClock.now - began
            let event: WatchEvent
            switch happening {
            case .inputEnded, .signal(.stop(SIGHUP)): return SignalWatcher.exitStatus(for: SIGHUP)
            case .signal(.stop(let number)): return SignalWatcher.exitStatus(for: number)
            case .signal(.resize), .signal(.goOn): event = Self.sizeNow
            case .event(.tick) where suspended.map { now - $0 >= Self.stopTime } ?? false: event = Self.sizeNow
            case .event(let other): event = other
            }
            if case .size = event {
                suspended = nil
                screen.enter()
            }
            for action in model.handle(event, now: now) {
                switch action {
                case .leave(let status): return status
                case .redraw: shown = ""
                case .suspend:
                    suspended = now
                    screen.leave()
                    // To the whole process group, as the terminal does.
                    kill(0, SIGTSTP)
                default: ask(action, tell)
                }
            }
            let frame = WatchScreen(model: model, style: style, isFiltered: selection.isFilter, now: now).frame()
            if frame != shown, screen.draw(frame) { shown = frame }
        }
        return ExitStatus.success.rawValue
    }

    private static var sizeNow: WatchEvent {
        let size = TerminalWindow.size(of: STDOUT_FILENO)
        return .size(width: size.width, height: size.height)
    }

    // MARK: The service

    /// Sends the request in a new task, so that keys work while towd does not respond.
    private func ask(_ action: WatchAction, _ tell: @escaping @Sendable (WatchEvent) -> Void) {
        Task {
            switch action {
            case .ask(let place, let limit):
                let query = selection.query(limit: limit, cursor: place.cursor, isReversed: place.isFromEnd)
                tell(.page(await Self.result { try await client.page(query) }))
            case .act(let verb, let id):
                tell(.done(await Self.result { try await client.act(verb, on: id) }))
            case .remove(let id, let files):
                tell(
                    .done(
                        await Self.result {
                            try await client.remove(id, deletingFiles: files)
                            return nil
                        }))
            case .leave, .suspend, .redraw: break
            }
        }
    }

    private static func result<Value>(_ body: () async throws -> Value) async -> Result<Value, WatchFailure> {
        do {
            return .success(try await body())
        } catch is ServiceClient.NotRunning {
            return .failure(.notRunning)
        } catch let error as TowlineError {
            return .failure(error.code == .transient ? .silent(error.message) : .refused(error.message))
        } catch {
            return .failure(.silent("no response from towd; asking again"))
        }
    }

    // MARK: Keys

    /// The time in milliseconds for the rest of a sequence to arrive, also over a slow line. After it, Escape is
    /// reported.
    private static let sequenceTime: Int32 = 100

    private static func readKeys(_ tell: @escaping @Sendable (Happening) -> Void) {
        PlatformThread {
            var parser = WatchKeyParser()
            var buffer = [UInt8](repeating: 0, count: 256)
            while true {
                var entry = pollfd(fd: STDIN_FILENO, events: Int16(POLLIN), revents: 0)
                let ready = poll(&entry, 1, parser.isWaiting ? sequenceTime : -1)
                if ready < 0 && errno == EINTR { continue }
                var keys: [WatchKey] = []
                if ready == 0 {
                    keys = parser.flush()
                } else {
                    let count = read(STDIN_FILENO, &buffer, buffer.count)
                    if count < 0 && (errno == EINTR || errno == EAGAIN) { continue }
                    guard count > 0 else { return tell(.inputEnded) }
                    keys = parser.feed(buffer[..<count])
                }
                for key in keys { tell(.event(.key(key))) }
            }
        }?.detach()
    }
}
