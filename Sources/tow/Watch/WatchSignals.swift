import Glibc

/// The signals that `tow watch` hears of, from a thread of its own.
enum WatchSignals {
    /// What a signal asks for.
    enum Wish: Hashable, Sendable {
        /// To end: SIGINT, SIGTERM or SIGHUP.
        case stop(Int32)
        /// To look at the window's size.
        case resize
        /// To go on after it was stopped: whoever had the terminal meanwhile may have changed it.
        case goOn
    }

    /// Seconds for an orderly end.
    private static let grace = 2

    /// Blocks the signals in this thread and those that it starts; call before there are any others.
    static func block() {
        var set = signals()
        pthread_sigmask(SIG_BLOCK, &set, nil)
    }

    /// - Parameters:
    ///   - abandon: called when an orderly end took too long or was asked for twice, and before the process ends.
    ///   - tell: called from the thread.
    static func watch(abandon: @escaping @Sendable () -> Void, tell: @escaping @Sendable (Wish) -> Void) {
        PlatformThread {
            var set = signals()
            while true {
                var number: Int32 = 0
                guard sigwait(&set, &number) == 0 else { return }
                switch number {
                case SIGWINCH: tell(.resize)
                case SIGCONT: tell(.goOn)
                default:
                    tell(.stop(number))
                    var stops = SignalWatcher.signals()
                    var limit = timespec(tv_sec: grace, tv_nsec: 0)
                    while sigtimedwait(&stops, nil, &limit) == -1 && errno == EINTR {}
                    abandon()
                    _exit(SignalWatcher.exitStatus(for: number))
                }
            }
        }?.detach()
    }

    private static func signals() -> sigset_t {
        var set = SignalWatcher.signals()
        for number in [SIGWINCH, SIGCONT] { sigaddset(&set, number) }
        return set
    }
}
