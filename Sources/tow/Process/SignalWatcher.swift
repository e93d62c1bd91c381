import Glibc
import Synchronization
import TowlineCore
import TowlineThreads

/// A watcher that turns the first SIGINT, SIGTERM or SIGHUP into a call. Ends the process at the second one, or if it
/// still runs after `grace`. This loses no written data: the journal allows a resume.
final class SignalWatcher: Sendable {
    private let first = Mutex<Int32?>(nil)
    /// The time in microseconds after the first signal in which further signals are ignored.
    private static let echo: UInt32 = 100_000

    /// The signal that requested the stop, or `nil`.
    var received: Int32? { first.withLock { $0 } }

    /// Blocks the signals in this thread and in the threads that it starts. Must be called before other threads exist.
    ///
    /// A signal that was ignored when the process started stays ignored: `nohup`, and `&` in a script, rely on this.
    static func block() {
        var set = signals()
        pthread_sigmask(SIG_BLOCK, &set, nil)
    }

    /// - Parameters:
    ///   - grace: the maximum time in seconds for an orderly end.
    ///   - onStop: called once, on a separate thread.
    func watch(grace: Int, onStop: @escaping @Sendable () -> Void) {
        PlatformThread { [self] in
            var set = Self.signals()
            var number: Int32 = 0
            guard sigwait(&set, &number) == 0 else { return }
            first.withLock { $0 = number }
            onStop()
            // timeout(1) signals the process and then its group: the second of these signals is not a request to end at
            // once.
            usleep(Self.echo)
            var echoes = timespec()
            while sigtimedwait(&set, nil, &echoes) > 0 || errno == EINTR {}
            var limit = timespec(tv_sec: grace, tv_nsec: 0)
            while sigtimedwait(&set, nil, &limit) == -1 && errno == EINTR {}
            _exit(Self.exitStatus(for: number))
        }?.detach()
    }

    /// Returns the exit status of an interrupted run. SIGHUP counts as SIGTERM.
    static func exitStatus(for signal: Int32) -> Int32 {
        (signal == SIGINT ? ExitStatus.interrupted : .terminated).rawValue
    }

    /// Returns the signals that request a stop and were not ignored when the process started.
    static func signals() -> sigset_t {
        var set = sigset_t()
        sigemptyset(&set)
        for number in [SIGINT, SIGTERM, SIGHUP] where !isIgnored(number) { sigaddset(&set, number) }
        return set
    }

    private static func isIgnored(_ number: Int32) -> Bool {
        var action = sigaction()
        guard sigaction(number, nil, &action) == 0 else { return false }
        return unsafeBitCast(action.__sigaction_handler.sa_handler, to: Int.self)
            == unsafeBitCast(SIG_IGN, to: Int.self)
    }
}
