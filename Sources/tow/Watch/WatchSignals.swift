import Glibc
import TowlineThreads

/// The signals of `tow watch`, received on a separate thread.
enum WatchSignals {
    /// The request that a signal makes.
    enum Wish: Hashable, Sendable {
        /// End: SIGINT, SIGTERM or SIGHUP.
        case stop(Int32)
        /// Read the size of the window.
        case resize
        /// Continue after a stop. Another program may have changed the terminal in the meantime.
        case goOn
    }

    /// The maximum time in seconds for an orderly end.
    private static let grace = 2

    /// Blocks the signals in this thread and in the threads that it starts. Must be called before other threads exist.
    static func block() {
        var set = signals()
        pthread_sigmask(SIG_BLOCK, &set, nil)
    }

    /// Starts the thread that receives the signals. The thread calls `tell` for each signal, and `abandon` before it
    /// ends the process, if an orderly end takes too long or is requested twice.
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
